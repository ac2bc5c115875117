"""What the properties of a table ask of its life cycle: clustering of small files, and compaction of deletes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from catalog.errors import InvalidArgumentError, UnknownNameError
from catalog.settings.setting import BOOLEAN, SIZE, TEXT, Setting, ValueType, duration, whole_number

CLUSTERING_PREFIX = "use.clustering."
COMPACTION_PREFIX = "use.compaction."


def _share(text: str) -> float:
    value = float(text)
    if not 0.0 <= value <= 1.0:
        raise ValueError(text)
    return value


_INTERVAL = duration("a positive duration such as '10 minutes' or '1 hour'", spark_syntax=False)
_RATIO = ValueType("share", "a number from 0 to 1", _share)

CLUSTERING_ENABLED = Setting(
    f"{CLUSTERING_PREFIX}enabled",
    BOOLEAN,
    "Merges small unindexed files with SizeTieredClustering in the background.",
    "false",
)
CLUSTERING_INTERVAL = Setting(
    f"{CLUSTERING_PREFIX}interval", _INTERVAL, "Time between two runs of clustering, at least.", "10 minutes"
)
COMPACTION_INTERVAL = Setting(
    f"{COMPACTION_PREFIX}interval",
    _INTERVAL,
    "Rewrites files with many deleted rows in the background, with at least this time between two runs.",
)
COMPACTION_COMMITS = Setting(
    f"{COMPACTION_PREFIX}commits",
    whole_number(1),
    "Rewrites files with many deleted rows in the background, once the table has so many new commits.",
)
COMPACTION_DELETED_RATIO = Setting(
    f"{COMPACTION_PREFIX}deletedRatio",
    _RATIO,
    "Rewrites a file if deletion vectors hide more than this share of its rows.",
    unset="0.05",
)
PRIMARY_KEY_KEY, ORDER_BY_KEY = f"{COMPACTION_PREFIX}primaryKey", f"{COMPACTION_PREFIX}orderBy"
COMPACTION_PRIMARY_KEY = Setting(
    PRIMARY_KEY_KEY,
    TEXT,
    "Compaction keeps only the latest row of each key: columns that together name a row, separated by commas.",
)
COMPACTION_ORDER_BY = Setting(
    ORDER_BY_KEY, TEXT, "Column whose greatest value is that of the latest row of a key; it must have no nulls."
)
CLUSTERING_ISOLATE_BYTES = Setting(
    f"{CLUSTERING_PREFIX}isolateBytes", SIZE, "Files of this size are never merged again.", unset="128MB"
)
# Options of SizeTieredClustering, which has the defaults.
_CLUSTERING_OPTIONS: tuple[tuple[str, Setting[object]], ...] = (
    (
        "min_files",
        Setting(f"{CLUSTERING_PREFIX}minFiles", whole_number(2), "Files of like size that are merged.", unset="4"),
    ),
    (
        "min_bytes",
        Setting(
            f"{CLUSTERING_PREFIX}minBytes", SIZE, "Bytes of files of like size that are merged, if they are fewer."
        ),
    ),
    (
        "tier_ratio",
        Setting(
            f"{CLUSTERING_PREFIX}tierRatio",
            whole_number(2),
            "How much larger the files of the next tier are.",
            unset="4",
        ),
    ),
    ("isolate_bytes", CLUSTERING_ISOLATE_BYTES),
    (
        "max_time_range",
        Setting(f"{CLUSTERING_PREFIX}maxTimeRange", _INTERVAL, "Time that the rows of a merged file span, at most."),
    ),
)
LIFECYCLE_SETTINGS: tuple[Setting[object], ...] = (
    CLUSTERING_ENABLED,
    CLUSTERING_INTERVAL,
    *(setting for _, setting in _CLUSTERING_OPTIONS),
    COMPACTION_INTERVAL,
    COMPACTION_COMMITS,
    COMPACTION_DELETED_RATIO,
    COMPACTION_PRIMARY_KEY,
    COMPACTION_ORDER_BY,
)
_NAMES = tuple(setting.name for setting in LIFECYCLE_SETTINGS)


@dataclass(frozen=True)
class Pace:
    """How often a strategy runs in the background: when either condition is met, whichever comes first.

    Attributes:
        interval: milliseconds since its last run; None = time does not count.
        commits: new versions of the table since its last run; None = they do not count.
    """

    interval: int | None = None
    commits: int | None = None

    def is_met(self, elapsed: int, versions: int) -> bool:
        """Whether the strategy may run again.

        Args:
            elapsed: milliseconds since its last run.
            versions: new versions of the table since then.
        """
        if self.interval is not None and elapsed >= self.interval:
            return True
        return self.commits is not None and versions >= self.commits


@dataclass(frozen=True)
class Policy:
    """One strategy that a table's life cycle asks for.

    Attributes:
        strategy: its name.
        options: its options as text.
        pace: how often it runs.
        asked: the properties that count, as they are written.
    """

    strategy: str
    options: Mapping[str, str]
    pace: Pace
    asked: Mapping[str, str]


def lifecycle_policies(configuration: Mapping[str, str]) -> tuple[Policy, ...]:
    """Reads a table's properties; compaction comes before clustering, which takes no file with deleted rows.

    Args:
        configuration: all properties of the table.

    Raises:
        InvalidArgumentError: a value that is not accepted, or a primary key without its order.
        UnknownNameError: a property below ``use.clustering.`` or ``use.compaction.`` that does not exist.
    """
    properties = {k: v for k, v in configuration.items() if k.startswith((CLUSTERING_PREFIX, COMPACTION_PREFIX))}
    for key in properties:
        if key not in _NAMES:
            raise UnknownNameError.of("property", key, _NAMES)
    for name, other in ((PRIMARY_KEY_KEY, ORDER_BY_KEY), (ORDER_BY_KEY, PRIMARY_KEY_KEY)):
        if name in properties and other not in properties:
            raise InvalidArgumentError.missing(other, f"{name} needs it")
    policies = []
    interval, commits = COMPACTION_INTERVAL.optional_value(properties), COMPACTION_COMMITS.optional_value(properties)
    ratio = COMPACTION_DELETED_RATIO.optional_value(properties)
    if interval is not None or commits is not None:
        options = {} if ratio is None else {"min_deleted_ratio": str(ratio)}
        pace = Pace(None if interval is None else int(interval), commits)
        asked = {key: value for key, value in properties.items() if key.startswith(COMPACTION_PREFIX)}
        if PRIMARY_KEY_KEY in properties:
            latest = {"primary_key": properties[PRIMARY_KEY_KEY], "order_by": properties[ORDER_BY_KEY]}
            policies.append(Policy("LatestRowCompaction", latest, pace, asked))
        policies.append(Policy("DeleteCompaction", options, pace, asked))
    options, pace = _clustering_options(properties), Pace(int(CLUSTERING_INTERVAL.value(properties)))
    if CLUSTERING_ENABLED.value(properties):
        asked = {key: value for key, value in properties.items() if key.startswith(CLUSTERING_PREFIX)}
        policies.append(Policy("SizeTieredClustering", options, pace, asked))
    return tuple(policies)


def _clustering_options(properties: Mapping[str, str]) -> dict[str, str]:
    options = {}
    for option, setting in _CLUSTERING_OPTIONS:
        value = setting.optional_value(properties)
        if value is not None:
            # Sizes such as 128MB are options as numbers; durations are texts there too.
            options[option] = properties[setting.name] if option == "max_time_range" else str(value)
    return options
