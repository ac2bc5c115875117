"""The options of a write through qbeast: which are ours, which are Delta's, and which are mistakes."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

from catalog.errors import UnknownNameError
from catalog.properties.index_properties import COLUMN_STATS, COLUMNS, CUBE_SIZE
from catalog.settings.setting import Setting
from catalog.similar_names import nearest_name

logger = logging.getLogger(__name__)

COLUMNS_OPTION, CUBE_SIZE_OPTION, COLUMN_STATS_OPTION = "columnsToIndex", "cubeSize", "columnStats"
_SETTINGS: dict[str, Setting[object]] = {
    COLUMNS_OPTION: COLUMNS,
    CUBE_SIZE_OPTION: CUBE_SIZE,
    COLUMN_STATS_OPTION: COLUMN_STATS,
}
PROPERTIES = {option: setting.name for option, setting in _SETTINGS.items()}
"""The table property of each option."""

# Delta reads these, and does not list them.
_OF_DELTA = ("maxBytesPerTrigger", "skipChangeCommits")
# How alike a name must be to one of ours, and to one of Delta's, to be a mistyped one.
_LIKE_OURS, _LIKE_DELTA = 0.75, 0.9
# Parts of names that nobody but us reads.
_OUR_WORDS = ("index", "cubesize")


def check_options(options: Mapping[str, str], others: Collection[str], of_delta: Collection[str]) -> None:
    """Refuses options that are certainly mistakes, before anything is touched.

    Data sources ignore options that they do not know, and settings of file systems and of Parquet come as options too.
    So only names are refused that are like one of ours or of Delta's; others are logged.

    Args:
        options: options of ours.
        others: names of all other options.
        of_delta: names of the options that Delta lists.

    Raises:
        UnknownNameError: a mistyped option, or a table property among the options.
        InvalidArgumentError: an option of ours has a malformed value.
    """
    known = {name.lower() for name in (*PROPERTIES, *of_delta, *_OF_DELTA)}
    for name in sorted(others):
        if name.lower() not in known:
            _check_unknown(name, (*of_delta, *_OF_DELTA))
    for option, setting in _SETTINGS.items():
        setting.named(option).optional_value(options)


def _check_unknown(name: str, of_delta: Collection[str]) -> None:
    lower = name.lower()
    if lower.startswith(("use.", "qbeast")):
        same = [option for option, key in PROPERTIES.items() if key.lower() == lower]
        raise UnknownNameError.of("option", name, same or PROPERTIES)
    if "." in name or name.startswith("__"):
        return  # settings of Parquet and of file systems, properties of Delta, and what Spark adds
    letters = lower.replace("_", "").replace("-", "")
    if nearest_name(letters, PROPERTIES, _LIKE_OURS) is not None or any(word in letters for word in _OUR_WORDS):
        raise UnknownNameError.of("option", name, PROPERTIES)
    near = nearest_name(letters, of_delta, _LIKE_DELTA)
    if near is not None:
        raise UnknownNameError.of("option", name, [near])
    logger.warning("The write option '%s' is known neither to qbeast nor to Delta, and has no effect.", name)
