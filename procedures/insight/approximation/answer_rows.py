"""The rows in which ``use.approximate`` returns an answer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from procedures.declare.result_rows import ShownRow
from procedures.insight.approximation.estimation import Estimates, Estimation
from procedures.insight.approximation.exact_query import ExactValue
from procedures.insight.approximation.intervals import Method

# Reason codes.
OUTSIDE_TOLERANCE, NO_INTERVAL, GROUPS_MAY_BE_MISSING = "OUTSIDE_TOLERANCE", "NO_INTERVAL", "GROUPS_MAY_BE_MISSING"


@dataclass(frozen=True)
class ApproximateRow(ShownRow):
    """One aggregate of one group, or what cannot be estimated.

    Attributes:
        keys: keys of the group by column, as text; empty without GROUP BY.
        aggregate: column of the query; None for a row about groups that may be missing.
        estimate: the estimate, or the exact answer; None without an interval.
        lower: lower end of the interval.
        upper: upper end of the interval.
        met: whether the interval is within the tolerance.
        method: ``normal`` or ``bounded``: how the interval was computed; ``exact``.
        fraction: fraction of the weights that was read; 1 if the answer is exact.
        expected_fraction: fraction at which the interval is expected to be within the tolerance.
        rows: rows of the sample that the query aggregates, in all groups.
        bytes_read: size of the files that all steps read.
        exact_bytes: size of the files that the exact answer reads.
        value: the exact answer as text, also of aggregates that are not numbers.
        reason: code if the interval is not within the tolerance.
        message: one-sentence summary.
    """

    keys: dict[str, str | None]
    aggregate: str | None
    estimate: float | None
    lower: float | None
    upper: float | None
    met: bool | None
    method: str | None
    fraction: float
    expected_fraction: float | None
    rows: int
    bytes_read: int
    exact_bytes: int
    value: str | None
    reason: str | None
    message: str


@dataclass(frozen=True)
class Reading:
    """What was read for an answer.

    Attributes:
        fraction: of the weights; 1 for an exact answer.
        rows: rows of the sample.
        bytes_read: bytes of the files, of all looks together.
        exact_bytes: bytes of the files that the exact answer reads.
    """

    fraction: float
    rows: int
    bytes_read: int
    exact_bytes: int


def estimated_rows(
    estimation: Estimation,
    keys: Sequence[tuple[str | None, ...]],
    made: Sequence[Estimates],
    reading: Reading,
    confidence: float,
    *,
    is_grouped: bool,
) -> list[ApproximateRow]:
    """Returns the rows of an answer from samples.

    Args:
        estimation: of the outputs of the query.
        keys: of each group, as texts.
        made: the estimates of each aggregate.
        reading: what was read.
        confidence: of the intervals.
        is_grouped: whether the query has GROUP BY.
    """
    names = [output.name for output in estimation.outputs if isinstance(output.what, int)]
    numbers = [output.what for output in estimation.outputs if isinstance(output.what, int)]
    rows = []
    for group, key in enumerate(keys):
        shown = {name: key[number] for name, number in zip(names, numbers, strict=True)}
        rows += [_estimated(shown, one, group, reading) for one in made]
    for name, what in estimation.without_interval:
        message = f"{what.why[0].upper()}{what.why[1:]}"
        rows.append(_row({}, name, reading, is_met=False, reason=NO_INTERVAL, message=message))
    if is_grouped and reading.fraction < 1.0 and made:
        rows.append(_missing_groups(reading, confidence))
    return rows


def exact_rows(values: Iterable[ExactValue], why: str, reading: Reading) -> list[ApproximateRow]:
    """Returns the rows of an exact answer.

    Args:
        values: the aggregates.
        why: the reason for an exact answer, as the end of a sentence.
        reading: what was read.
    """
    return [
        _row(
            value.keys,
            value.name,
            reading,
            estimate=value.number,
            lower=value.number,
            upper=value.number,
            is_met=True,
            value=value.text,
            method=Method.EXACT.value,
            expected_fraction=1.0,
            message=f"Exact, since {why}",
        )
        for value in values
    ]


def _estimated(shown: dict[str, str | None], one: Estimates, group: int, reading: Reading) -> ApproximateRow:
    estimate, lower, upper = (float(values[group]) for values in (one.estimate, one.lower, one.upper))
    is_met = bool(one.is_met[group])
    return _row(
        shown,
        one.name,
        reading,
        estimate=_number(estimate),
        lower=_number(lower),
        upper=_number(upper),
        is_met=is_met,
        method=one.method(group).value,
        expected_fraction=reading.fraction if is_met else _number(float(one.needed[group])),
        reason=None if is_met else OUTSIDE_TOLERANCE,
        message=_described(estimate, lower, upper, is_met=is_met),
    )


def _missing_groups(reading: Reading, confidence: float) -> ApproximateRow:
    most = math.ceil(math.log(1.0 - confidence) / math.log1p(-reading.fraction))
    message = (
        f"Groups of fewer than {most:,} distinct weights may be missing: the sample contains a larger group with a "
        f"probability of {confidence:g} at least"
    )
    return _row({}, None, reading, is_met=None, reason=GROUPS_MAY_BE_MISSING, message=message)


def _row(
    keys: dict[str, str | None],
    aggregate: str | None,
    reading: Reading,
    *,
    message: str,
    is_met: bool | None,
    estimate: float | None = None,
    lower: float | None = None,
    upper: float | None = None,
    value: str | None = None,
    method: str | None = None,
    expected_fraction: float | None = None,
    reason: str | None = None,
) -> ApproximateRow:
    return ApproximateRow(
        keys=keys,
        aggregate=aggregate,
        estimate=estimate,
        lower=lower,
        upper=upper,
        met=is_met,
        method=method,
        fraction=reading.fraction,
        expected_fraction=expected_fraction,
        rows=reading.rows,
        bytes_read=reading.bytes_read,
        exact_bytes=reading.exact_bytes,
        value=value,
        reason=reason,
        message=message,
    )


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _described(estimate: float, lower: float, upper: float, *, is_met: bool) -> str:
    if not all(map(math.isfinite, (estimate, lower, upper))):
        return "The sample has too few rows for an interval"
    verdict = "within" if is_met else "outside"
    return f"{estimate:.6g} (from {lower:.6g} to {upper:.6g}), {verdict} the tolerance"
