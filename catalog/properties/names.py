"""Which table properties exist below ``use.``: any other there is refused, with the nearest name."""

from __future__ import annotations

import re
from collections.abc import Iterable

from catalog.errors import UnknownNameError
from catalog.properties.alert_properties import ALERT_SETTINGS, HEALTH_PREFIX
from catalog.properties.fleet_properties import FLEET_PREFIX, FLEET_SETTINGS
from catalog.properties.foreign_properties import foreign_property
from catalog.properties.index_properties import (
    AS_INDEXED_KEY,
    AUTO_COLUMNS_KEY,
    EXTENSIONS_KEY_PREFIX,
    HASH_TYPES_KEY_PREFIX,
    INDEX_SETTINGS,
    ON_WRITE_KEY,
)
from catalog.properties.insight_properties import INSIGHT_SETTINGS, INSIGHTS_PREFIX
from catalog.properties.lifecycle_properties import (
    CLUSTERING_PREFIX,
    COMPACTION_PREFIX,
    LIFECYCLE_SETTINGS,
    ORDER_BY_KEY,
    PRIMARY_KEY_KEY,
)
from catalog.properties.log_properties import LOG_PREFIX, LOG_SETTINGS
from catalog.properties.optimization_properties import OPTIMIZATION_SETTINGS, PREFIX, option_key
from catalog.properties.retention_properties import RETENTION_HOURS, RETENTION_PREFIX, RETENTION_SETTINGS, VACUUM_PREFIX
from catalog.settings.setting import Setting
from catalog.similar_names import nearest_name

PROPERTIES: dict[str, Setting[object]] = {
    s.name: s
    for s in (
        *INDEX_SETTINGS,
        *OPTIMIZATION_SETTINGS,
        *LIFECYCLE_SETTINGS,
        *RETENTION_SETTINGS,
        *LOG_SETTINGS,
        *ALERT_SETTINGS,
        *INSIGHT_SETTINGS,
        *FLEET_SETTINGS,
    )
}
"""The table properties that owners set, by name; options of strategies are properties besides."""
_BY_KEY = PROPERTIES | {alias: s.named(alias) for s in PROPERTIES.values() for alias in s.aliases}

_NAMESPACE = "use."
_FAMILIES = (
    "use.index.",
    PREFIX,
    CLUSTERING_PREFIX,
    COMPACTION_PREFIX,
    RETENTION_PREFIX,
    VACUUM_PREFIX,
    LOG_PREFIX,
    HEALTH_PREFIX,
    INSIGHTS_PREFIX,
    FLEET_PREFIX,
)
# Written by indexing, per revision; a statement may repeat them, as one that SHOW CREATE TABLE has printed does.
_OF_REVISION = re.compile(f"({re.escape(HASH_TYPES_KEY_PREFIX)}|{re.escape(EXTENSIONS_KEY_PREFIX)})[0-9]+")

# Inserts fail without index columns, a retention lengthens Delta's in the same commit, and a key says which rows go.
_OF_TABLES_ONLY = (ON_WRITE_KEY, RETENTION_HOURS.name, PRIMARY_KEY_KEY, ORDER_BY_KEY)

# Options of the strategies, each of which is a property too. Filled by whoever declares strategies.
_options: set[str] = set()


def declare_options(names: Iterable[str]) -> None:
    """Makes options of strategies known as properties: ``batch_bytes`` as ``use.optimization.batch-bytes``."""
    _options.update(names)


def declared_property(key: str) -> Setting[object] | None:
    """The property of a key, which may be an alias, under this key; None if there is none."""
    return _BY_KEY.get(key)


def in_namespace(key: str) -> bool:
    """Whether a property lies below ``use.``, in any case."""
    return key.lower().startswith(_NAMESPACE)


def is_inherited(key: str) -> bool:
    """Whether a table may have a property from its database or from the session; see ``_OF_TABLES_ONLY``."""
    return key not in _OF_TABLES_ONLY and (key in _BY_KEY or key in map(option_key, _options))


def unknown_property(key: str) -> UnknownNameError | None:
    """The refusal of a property below ``use.`` that does not exist; None for any other property."""
    if not in_namespace(key) or _exists(key):
        return None
    foreign = foreign_property(key[len(_NAMESPACE) :])
    if foreign is not None:
        return UnknownNameError.of_another_system("property", key, foreign.advice)
    family = next((f for f in _FAMILIES if key.lower().startswith(f)), _NAMESPACE)
    return UnknownNameError.of("property", key, [known for known in _known() if known.startswith(family)])


def ignored_property(key: str) -> UnknownNameError | None:
    """The same in few words, for a property that a table has."""
    unknown = unknown_property(key)
    if unknown is not None:
        near = nearest_name(key, _known())
        unknown.message = f"There is no property '{key}'{f', did you mean {near}?' if near else '.'}"
    return unknown


def _exists(key: str) -> bool:
    return key in _known() or key in (AS_INDEXED_KEY, AUTO_COLUMNS_KEY) or _OF_REVISION.fullmatch(key) is not None


def _known() -> tuple[str, ...]:
    return (*_BY_KEY, *map(option_key, sorted(_options)))
