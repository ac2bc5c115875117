"""The properties that leave the choice of the index columns to the service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from catalog.properties.index_properties import AUTO_PERIOD, AUTO_PERIOD_KEY
from catalog.properties.insight_properties import records_scans
from catalog.properties.lifecycle_properties import Pace

_PACE = Pace(interval=3_600_000)


@dataclass(frozen=True)
class ColumnChoicePolicy:
    """How the service chooses the index columns of a table.

    Attributes:
        period: milliseconds between two changes, at least.
        is_recorded: whether the queries that read the table are recorded.
        asked: the properties that count, as they are written.
        pace: how often the service looks at the records.
    """

    period: int
    is_recorded: bool
    asked: Mapping[str, str]
    pace: Pace = _PACE


def column_choice_policy(configuration: Mapping[str, str]) -> ColumnChoicePolicy | None:
    """Returns what the properties in force ask for; None if the owner names the columns, or there are none.

    Raises:
        InvalidArgumentError: a value that is not accepted.
    """
    # See ``InheritedProperties.effective``.
    period = AUTO_PERIOD.optional_value(configuration)
    if period is None:
        return None
    asked = {AUTO_PERIOD_KEY: configuration[AUTO_PERIOD_KEY]}
    return ColumnChoicePolicy(int(period), records_scans(configuration), asked)
