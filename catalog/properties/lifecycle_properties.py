"""What the properties of a table ask of its life cycle: clustering of small files, and compaction of deletes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from catalog.errors import InvalidArgumentError, UnknownNameError
from catalog.properties.option_properties import options_given, properties_of
from catalog.settings.setting import BOOLEAN, Setting, whole_number
from catalog.settings.strategy_options import (
    CLUSTERING_OPTIONS,
    ISOLATE_BYTES,
    MIN_DELETED_RATIO,
    ORDER_BY,
    POSITIVE_DURATION,
    PRIMARY_KEY,
)

CLUSTERING_PREFIX = "use.clustering."
COMPACTION_PREFIX = "use.compaction."

CLUSTERING_ENABLED = Setting(
    f"{CLUSTERING_PREFIX}enabled",
    BOOLEAN,
    "Merges small unindexed files with SizeTieredClustering in the background.",
    "false",
)
CLUSTERING_INTERVAL = Setting(
    f"{CLUSTERING_PREFIX}interval", POSITIVE_DURATION, "Time between two runs of clustering, at least.", "10 minutes"
)
COMPACTION_INTERVAL = Setting(
    f"{COMPACTION_PREFIX}interval",
    POSITIVE_DURATION,
    "Rewrites files with many deleted rows in the background, with at least this time between two runs.",
)
COMPACTION_COMMITS = Setting(
    f"{COMPACTION_PREFIX}commits",
    whole_number(1),
    "Rewrites files with many deleted rows in the background, once the table has so many new commits.",
)
_CLUSTERING_PROPERTIES = properties_of(CLUSTERING_PREFIX, *CLUSTERING_OPTIONS)
_DELETE_PROPERTIES = properties_of(
    COMPACTION_PREFIX, MIN_DELETED_RATIO, aliases={MIN_DELETED_RATIO.name: "deletedRatio"}
)
_KEY_PROPERTIES = properties_of(COMPACTION_PREFIX, PRIMARY_KEY, ORDER_BY)
CLUSTERING_ISOLATE_BYTES: Setting[int] = _CLUSTERING_PROPERTIES[ISOLATE_BYTES.name]
COMPACTION_DELETED_RATIO: Setting[float] = _DELETE_PROPERTIES[MIN_DELETED_RATIO.name]
PRIMARY_KEY_KEY, ORDER_BY_KEY = (setting.name for setting in _KEY_PROPERTIES.values())
LIFECYCLE_SETTINGS: tuple[Setting[object], ...] = (
    CLUSTERING_ENABLED,
    CLUSTERING_INTERVAL,
    *_CLUSTERING_PROPERTIES.values(),
    COMPACTION_INTERVAL,
    COMPACTION_COMMITS,
    *_DELETE_PROPERTIES.values(),
    *_KEY_PROPERTIES.values(),
)
_KEYS = tuple(key for setting in LIFECYCLE_SETTINGS for key in (setting.name, *setting.aliases))


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
        if key not in _KEYS:
            raise UnknownNameError.of("property", key, _KEYS)
    for name, other in ((PRIMARY_KEY_KEY, ORDER_BY_KEY), (ORDER_BY_KEY, PRIMARY_KEY_KEY)):
        if name in properties and other not in properties:
            raise InvalidArgumentError.missing(other, f"{name} needs it")
    policies = []
    interval, commits = COMPACTION_INTERVAL.optional_value(properties), COMPACTION_COMMITS.optional_value(properties)
    deletes, latest = options_given(_DELETE_PROPERTIES, properties), options_given(_KEY_PROPERTIES, properties)
    if interval is not None or commits is not None:
        pace = Pace(None if interval is None else int(interval), commits)
        asked = {key: value for key, value in properties.items() if key.startswith(COMPACTION_PREFIX)}
        if latest:
            policies.append(Policy("LatestRowCompaction", latest, pace, asked))
        policies.append(Policy("DeleteCompaction", deletes, pace, asked))
    clustering = options_given(_CLUSTERING_PROPERTIES, properties)
    pace = Pace(int(CLUSTERING_INTERVAL.value(properties)))
    if CLUSTERING_ENABLED.value(properties):
        asked = {key: value for key, value in properties.items() if key.startswith(CLUSTERING_PREFIX)}
        policies.append(Policy("SizeTieredClustering", clustering, pace, asked))
    return tuple(policies)
