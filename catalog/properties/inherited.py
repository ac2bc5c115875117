"""Properties that a table does not set itself: those of its database, and of the session.

A property of the table counts first, then one of its database, then one of the session (``spark.qbeast.`` and the name
of the property), then the default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from catalog.columns.column_names import is_in
from catalog.errors import UseError
from catalog.properties.fleet_properties import FLEET_ENABLED, FLEET_ENABLED_KEY, Pool, pool_of, with_fleet_defaults
from catalog.properties.index_properties import (
    AUTO_COLUMNS_KEY,
    AUTO_PERIOD,
    AUTO_PERIOD_KEY,
    COLUMNS_KEY,
    column_entries,
    is_automatic,
)
from catalog.properties.insight_properties import CONSUMPTION_ENABLED
from catalog.properties.lifecycle_properties import CLUSTERING_ENABLED, COMPACTION_COMMITS, COMPACTION_INTERVAL
from catalog.properties.log_properties import LOG_COMMITS, LOG_INTERVAL
from catalog.properties.names import is_inherited
from catalog.properties.optimization_properties import AUTO_ENABLED_KEY, TYPE_KEY, has_index
from catalog.properties.retention_properties import VACUUM_INTERVAL

TABLE, DATABASE, SESSION, DEFAULT = "table", "database", "session", "default"
CHOSEN = "chosen from reads"
"""The source of index columns that the service has chosen."""
# One of them decides whether and how a table is optimized: the nearest source that sets one of them has its way.
_SWITCHES = (AUTO_ENABLED_KEY, TYPE_KEY, FLEET_ENABLED_KEY)
# Each of them makes the service change a table. A table that leaves the fleet does not inherit them.
_REQUESTS = tuple(
    setting.name
    for setting in (
        CLUSTERING_ENABLED,
        COMPACTION_INTERVAL,
        COMPACTION_COMMITS,
        VACUUM_INTERVAL,
        LOG_COMMITS,
        LOG_INTERVAL,
    )
)


@dataclass(frozen=True)
class InheritedProperties:
    """What a table has from elsewhere.

    Attributes:
        database: properties of its database below ``use.``.
        session: settings of the session that stand for properties, by the name of the property.
    """

    database: Mapping[str, str] = field(default_factory=dict)
    session: Mapping[str, str] = field(default_factory=dict)

    def effective(self, own: Mapping[str, str], columns: Sequence[str] | None = None) -> dict[str, str]:
        """The properties in force.

        Where the service chooses the index columns, ``use.index.columns`` has those that it has chosen, or is missing,
        and ``use.index.autoPeriod`` is set; elsewhere, it is not.

        Args:
            own: all properties of the table.
            columns: its columns; index columns that it lacks are not inherited. None = not known.
        """
        return {key: text for key, (text, _) in self._merged(own, columns).items()}

    def origin(self, key: str, own: Mapping[str, str], columns: Sequence[str] | None = None) -> str:
        """Where the value of a property in force comes from.

        Args:
            key: the property.
            own: all properties of the table.
            columns: see ``effective``.
        """
        return self._merged(own, columns).get(key, ("", DEFAULT))[1]

    def pools(self, database: str | None) -> tuple[Pool, ...]:
        """The budgets that a table shares with others: that of its database, and that of all tables.

        A budget that cannot be read allows nothing.

        Args:
            database: its database; None for a table that is named by its path.
        """
        wanted = [(None, self.session)] if database is None else [(database, self.database), (None, self.session)]
        pools = [_pool(name, properties) for name, properties in wanted]
        return tuple(pool for pool in pools if pool is not None)

    def _merged(self, own: Mapping[str, str], columns: Sequence[str] | None) -> dict[str, tuple[str, str]]:
        """The properties in force, each with its source."""
        merged = {key: (text, TABLE) for key, text in own.items()}
        for source, name in ((self.database, DATABASE), (self.session, SESSION)):
            has_switch = any(key in merged for key in _SWITCHES)
            is_left_out = _is_left_out(merged)
            for key, text in source.items():
                if key in merged or not is_inherited(key):
                    continue
                if is_left_out and key in _REQUESTS:
                    continue
                if is_left_out and key == COLUMNS_KEY and is_automatic(text):
                    # Columns that were chosen before stay, and no others are chosen.
                    text = own.get(AUTO_COLUMNS_KEY, "")
                if (key in _SWITCHES and has_switch) or (
                    key == COLUMNS_KEY and not is_automatic(text) and not _has_columns(text, columns)
                ):
                    continue
                merged[key] = text, name
        _put_chosen_columns(merged, columns)
        if FLEET_ENABLED_KEY in merged:
            texts = {key: text for key, (text, _) in merged.items()}
            implied = with_fleet_defaults(texts, has_index=has_index(texts))
            merged = {key: (text, merged[FLEET_ENABLED_KEY][1]) for key, text in implied.items()} | merged
        return merged


NOTHING_INHERITED = InheritedProperties()


def _pool(database: str | None, properties: Mapping[str, str]) -> Pool | None:
    try:
        return pool_of(database, properties)
    except UseError:  # shown where properties and settings are checked
        return Pool(database, 0, 1, None)


def _is_left_out(merged: Mapping[str, tuple[str, str]]) -> bool:
    """Whether ``use.fleet.enabled`` is false for a table, so that farther sources do not make the service change it."""
    try:
        return FLEET_ENABLED.optional_value({key: text for key, (text, _) in merged.items()}) is False
    except UseError:
        return False


def _put_chosen_columns(merged: dict[str, tuple[str, str]], columns: Sequence[str] | None) -> None:
    """Replaces ``auto`` by the columns that the service has chosen, if the table still has them all."""
    text, source = merged.get(COLUMNS_KEY, ("", DEFAULT))
    if not is_automatic(text):
        merged.pop(AUTO_PERIOD_KEY, None)
        return
    del merged[COLUMNS_KEY]
    merged.setdefault(AUTO_PERIOD_KEY, (str(AUTO_PERIOD.default), source))
    # The choice is made from recorded reads.
    merged.setdefault(CONSUMPTION_ENABLED.name, ("true", source))
    chosen, _ = merged.get(AUTO_COLUMNS_KEY, ("", DEFAULT))
    if chosen and _has_columns(chosen, columns):
        merged[COLUMNS_KEY] = chosen, CHOSEN


def _has_columns(text: str, columns: Sequence[str] | None) -> bool:
    known = None if columns is None else {column.lower() for column in columns}
    try:
        return all(known is None or is_in(name, known) for name, _ in column_entries(COLUMNS_KEY, text))
    except UseError:
        return False
