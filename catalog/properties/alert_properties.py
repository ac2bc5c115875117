"""The properties that say when the health of a table is worth an alert."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from catalog.settings.setting import AT_LEAST_ZERO, Setting, duration, whole_number

HEALTH_PREFIX = "use.health."
_ALERT = f"{HEALTH_PREFIX}alert."
SCORE = "score"
HEALTH_PARTS = (
    *("unindexed_share", "fragmentation", "overlap"),
    *("sample_1_percent", "sample_10_percent", "box_1_percent", "join_1_percent"),
    *("small_files", "deleted_rows", "log_length", "failures", "overfull_cubes"),
)
"""What ``use.health`` measures."""

ALERT_BELOW: Setting[int] = Setting(
    f"{_ALERT}below",
    whole_number(1, most=100),
    "Alerts when the score of the table's health is below this number, 1 to 100.",
)
ALERT_PARTS: Mapping[str, Setting[float]] = {
    part: Setting(f"{_ALERT}{part}", AT_LEAST_ZERO, f"Alerts when {part} of use.health is above this number.")
    for part in HEALTH_PARTS
}
HEALTH_INTERVAL: Setting[float] = Setting(
    f"{HEALTH_PREFIX}interval",
    duration("a positive duration such as '1 hour' or '30 minutes'", spark_syntax=False),
    "Time between two looks at the health of a table with alerts, at least.",
    "1 hour",
)
ALERT_SETTINGS: tuple[Setting[object], ...] = (ALERT_BELOW, *ALERT_PARTS.values(), HEALTH_INTERVAL)


@dataclass(frozen=True)
class AlertPolicy:
    """When the service alerts.

    Attributes:
        below: score below which it alerts; None = at none.
        above: value above which it alerts, by part.
        interval: milliseconds between two looks at the table, at least.
        asked: the properties that count, as they are written.
    """

    below: int | None
    above: Mapping[str, float]
    interval: int
    asked: Mapping[str, str]

    def crossed(self, values: Mapping[str, float]) -> dict[str, float]:
        """Returns the thresholds that are crossed, by the name of what crosses them.

        Args:
            values: what was measured, by part; the score as ``SCORE``.
        """
        crossed = {part: most for part, most in self.above.items() if values.get(part, most) > most}
        if self.below is not None and values.get(SCORE, self.below) < self.below:
            crossed[SCORE] = float(self.below)
        return crossed


def alert_policy(configuration: Mapping[str, str]) -> AlertPolicy | None:
    """Returns what a table's properties ask for; None without any threshold.

    Raises:
        InvalidArgumentError: a value that is not accepted.
    """
    below, interval = ALERT_BELOW.optional_value(configuration), int(HEALTH_INTERVAL.value(configuration))
    above = {part: setting.optional_value(configuration) for part, setting in ALERT_PARTS.items()}
    thresholds = {part: most for part, most in above.items() if most is not None}
    if below is None and not thresholds:
        return None
    asked = {s.name: configuration[s.name] for s in ALERT_SETTINGS if s.name in configuration}
    return AlertPolicy(below, thresholds, interval, asked)
