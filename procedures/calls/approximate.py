"""``CALL use.approximate``: answers an aggregate query from samples, within a tolerance."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any

from pyspark.sql import DataFrame

from catalog.errors import InvalidArgumentError
from procedures.declare.declaration import Call
from procedures.declare.operation import Constraint, operation
from procedures.declare.result_rows import data_frame_of
from procedures.insight.approximation.answer import ON_MISS, Answer, Request
from procedures.insight.approximation.answer_rows import ApproximateRow
from procedures.insight.approximation.estimation import Goal
from procedures.insight.approximation.group_rows import rows_by_group
from procedures.insight.skipping.queries import QUERY, checked_query


def request_of(arguments: Mapping[str, Any]) -> Request:
    """Returns the request that checked arguments make.

    Args:
        arguments: of the procedure.
    """
    goal = Goal(
        float(arguments["tolerance"]),
        float(arguments["confidence"]),
        bool(arguments["absolute"]),
        bool(arguments["per_group"]),
    )
    return Request(goal, float(arguments["max_fraction"]), arguments["on_miss"], bool(arguments["dry_run"]))


def _validate(arguments: Mapping[str, Any]) -> None:
    tolerance, fraction = float(arguments["tolerance"]), float(arguments["max_fraction"])
    if not (0.0 < tolerance < math.inf) or (tolerance >= 1.0 and not arguments["absolute"]):
        accepted = "a number above 0" if arguments["absolute"] else "a number above 0 and below 1, or absolute => true"
        raise InvalidArgumentError.of("tolerance", f"{tolerance:g}", accepted)
    if not 0.0 < fraction <= 1.0:
        raise InvalidArgumentError.of("max_fraction", f"{fraction:g}", "a number above 0, up to 1")


def answer_by_group(data: DataFrame, request: Request) -> DataFrame:
    """Answers a query, and returns one row per group; see ``rows_by_group``.

    Args:
        data: the query.
        request: how it is answered.
    """
    answer = Answer.of(data, request)
    return rows_by_group(data.sparkSession, answer.rows(), answer.source.query.outputs, data.schema)


def approximate(
    call: Call,
    query: Annotated[str, Constraint(not_blank=QUERY)],
    tolerance: float = 0.05,
    confidence: Annotated[float, Constraint(least=0.5, most=0.999999)] = 0.95,
    max_fraction: float = 0.5,
    on_miss: Annotated[str, Constraint(choices=ON_MISS)] = "exact",
    *,
    absolute: bool = False,
    per_group: bool = False,
    dry_run: bool = False,
    by_group: bool = False,
) -> DataFrame:
    """Answers an aggregate query from samples of an indexed table, with a confidence interval for each aggregate.

    Args:
        query: SELECT with aggregates over an indexed table.
        tolerance: Half the length of each interval at most, in proportion to the estimate.
        confidence: Probability with which the intervals contain the exact answer.
        max_fraction: Fraction of the rows to sample at most.
        on_miss: What happens if the tolerance is not reached: exact answers exactly, error raises an error, estimate
            returns what was reached.
        absolute: Whether the tolerance is in the unit of the aggregates.
        per_group: Whether each interval has the confidence, else all intervals together.
        dry_run: Read the first sample only, and show the fraction expected.
        by_group: Returns the columns of the query, one row per group, and the ends of each interval in columns _lower
            and _upper, with met and fraction.
    """
    text = checked_query(call.spark, query)
    goal = Goal(tolerance, confidence, absolute, per_group)
    request = Request(goal, max_fraction, on_miss, dry_run)
    data = call.spark.sql(text)
    if by_group:
        return answer_by_group(data, request)
    return data_frame_of(call.spark, ApproximateRow, Answer.of(data, request).rows())


APPROXIMATE = operation(approximate, row=ApproximateRow, validate=_validate)
