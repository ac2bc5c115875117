"""Table properties of other systems: what a statement that sets one is told to set instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from catalog.properties.index_properties import COLUMN_STATS_KEY, COLUMNS_KEY, CUBE_SIZE_KEY
from catalog.properties.lifecycle_properties import CLUSTERING_PREFIX, ORDER_BY_KEY, PRIMARY_KEY_KEY
from catalog.properties.optimization_properties import PREFIX
from catalog.properties.retention_properties import RETENTION_HOURS, VACUUM_INTERVAL


@dataclass(frozen=True)
class ForeignProperty:
    """A property of another system.

    Attributes:
        name: its name in lower case; one that ends with a dot stands for all names that begin with it.
        advice: what to set or call instead, in sentences.
        has_effect: whether Delta itself obeys the property, so that it matters only on tables that USE optimizes.
    """

    name: str
    advice: str
    has_effect: bool = False

    def matches(self, key: str) -> bool:
        """Whether this is the property of a name, in any case."""
        lower = key.lower()
        return lower.startswith(self.name) if self.name.endswith(".") else lower == self.name


_STEPS = f"{PREFIX}autoOptimize.stepConsolidation."
_TIME_RANGE = (
    "CALL use.optimize with the strategy StepConsolidation has the options 'timestamp_start' and 'timestamp_end'."
)


def _instead(key: str) -> str:
    return f"Set '{key}' instead."


def _step(name: str, ours: str) -> ForeignProperty:
    return ForeignProperty(f"sm.consolidation.{name}", _instead(f"{_STEPS}{ours}"))


# The first that matches counts.
FOREIGN_PROPERTIES = (
    ForeignProperty("acid.data.retain.hours", _instead(RETENTION_HOURS.name)),
    ForeignProperty("acid.", f"'{RETENTION_HOURS.name}' says how long history stays."),
    ForeignProperty(
        "cdc.data.retain.hours",
        "'delta.enableChangeDataFeed' turns the change data feed on, which stays as long as the rest of the history: "
        f"'{RETENTION_HOURS.name}'.",
    ),
    ForeignProperty(
        "transactional",
        "Every Delta table is transactional. To keep only the latest row of each key, set "
        f"'{PRIMARY_KEY_KEY}' and '{ORDER_BY_KEY}'.",
    ),
    ForeignProperty("write.bucket.num", f"Rows are divided by the columns in '{COLUMNS_KEY}', without buckets."),
    ForeignProperty(
        "lifecycle", f"USE deletes no rows because of their age. '{RETENTION_HOURS.name}' says how long history stays."
    ),
    ForeignProperty("columnstoindex", _instead(COLUMNS_KEY)),
    ForeignProperty("cubesize", _instead(CUBE_SIZE_KEY)),
    ForeignProperty("columnstats", _instead(COLUMN_STATS_KEY)),
    _step("steps", "steps"),
    _step("step_min_frags", "minFiles"),
    _step("step_max_frags", "maxFiles"),
    _step("step_size_ratio", "sizeRatio"),
    _step("amplification", "amplification"),
    _step("purge_deleted_cells", "purgeDeleted"),
    _step("max_fragment_size", "maxFileBytes"),
    ForeignProperty("sm.consolidation.timestamp_start", _TIME_RANGE),
    ForeignProperty("sm.consolidation.timestamp_end", _TIME_RANGE),
    ForeignProperty(
        "sm.consolidation.mode",
        f"'{_STEPS}enabled' merges files, and CALL use.consolidate_log has modes for the log.",
    ),
    ForeignProperty("sm.consolidation.", f"'{_STEPS}enabled' merges files in the background."),
    ForeignProperty(
        "sm.vacuum.", f"CALL use.vacuum deletes files, and '{VACUUM_INTERVAL.name}' does it in the background."
    ),
    ForeignProperty(
        "delta.autooptimize.autocompact",
        "Files that Delta merges after a write have no index, and conflict with an optimization. "
        f"'{PREFIX}autoOptimize.enabled' merges files too.",
        has_effect=True,
    ),
)
"""The known properties of MaxCompute, of qbeast-spark's writes, of TileDB, and of Delta where it competes with USE."""


def foreign_property(key: str) -> ForeignProperty | None:
    """The foreign property of a name; None for any other name."""
    return next((foreign for foreign in FOREIGN_PROPERTIES if foreign.matches(key)), None)


def foreign_warning(before: Mapping[str, str], after: Mapping[str, str]) -> str | None:
    """What to log about the foreign properties that a statement sets.

    Args:
        before: properties of the table as it is; nothing for one that is made.
        after: its properties as the statement asks for them.

    Returns:
        One text for all of them; None if the statement sets none that matters.
    """
    texts = []
    for key in sorted(after):
        foreign = foreign_property(key)
        if foreign is None:
            continue
        is_set = before.get(key) != after[key]
        if not foreign.has_effect and is_set:
            texts.append(f"'{key}' has no effect on a Delta table. {foreign.advice}")
        elif foreign.has_effect and _competes(key, after) and (is_set or not _competes(key, before)):
            texts.append(f"'{key}' works against USE. {foreign.advice}")
    return " ".join(texts) or None


def _competes(key: str, properties: Mapping[str, str]) -> bool:
    """Whether a property of Delta is turned on for a table that USE optimizes."""
    optimized = any(k == COLUMNS_KEY or k.startswith((PREFIX, CLUSTERING_PREFIX)) for k in properties)
    return optimized and properties.get(key, "false").lower() != "false"
