"""Answers of aggregate queries: growing prefixes of the weights are read until the intervals are within a tolerance."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from catalog.errors import ToleranceNotMetError
from catalog.jvm.query_trees import analyzed_plan, private_rows
from catalog.jvm.read_report import bytes_to_read
from catalog.jvm.session import described_jobs
from catalog.pruning.read_planning import sample_facts
from catalog.quantities import share_text, size_text
from catalog.settings.session_settings import APPROXIMATE_BYTES
from catalog.table.managed_table import ManagedTable
from otree.weight import WeightRange
from procedures.insight.approximation.aggregate_query import aggregate_query
from procedures.insight.approximation.answer_rows import ApproximateRow, Reading, estimated_rows, exact_rows
from procedures.insight.approximation.estimation import Estimates, Estimation, Goal
from procedures.insight.approximation.exact_query import ExactQuery
from procedures.insight.approximation.sample_sums import clusters, sample_sums
from procedures.insight.approximation.sampled_source import SampledSource
from procedures.insight.approximation.value_bounds import TableBounds, ValueRanges

logger = logging.getLogger(__name__)

FIRST_FRACTION = 0.001
# Below, the first sample may be too small to show which fraction is needed.
_PILOT_FRACTION = 0.01
_MOST_GROWTH = 20.0
_LEAST_GROWTH = 1.5
# More than the expected need, since a margin that is slightly too large costs another step.
_RESERVE = 1.2

EXACT, ERROR, ESTIMATE = "exact", "error", "estimate"
ON_MISS = (EXACT, ERROR, ESTIMATE)
# Of an exact answer, below which it does not matter how much a sample reads.
_SMALL_BYTES = 32_000_000
# An exact answer that takes as long as fewer looks at samples is given as soon as it is expected to be faster.
_FEW_LOOKS = 10


@dataclass(frozen=True)
class Request:
    """How a query is answered.

    Attributes:
        goal: the requested precision.
        max_fraction: fraction of the weights that is read, at most, unless the answer is exact.
        on_miss: one of ``ON_MISS``: what happens if the goal is not reached.
        dry_run: whether to read the first prefix only.
    """

    goal: Goal
    max_fraction: float
    on_miss: str
    dry_run: bool = False


@dataclass(eq=False)
class Answer:
    """Answers one query; each step reads the weights that no earlier step has read.

    Attributes:
        source: the rows of the query.
        exact: the query itself.
        request: how it is answered.
    """

    source: SampledSource
    exact: ExactQuery
    request: Request
    _parts: list[DataFrame] = field(default_factory=list)
    _bytes_read: int = 0
    _rows: int = 0
    _fraction: float = 0.0

    @classmethod
    def of(cls, data: DataFrame, request: Request) -> Answer:
        """Checks a query.

        Raises:
            NotSupportedError: the query cannot be answered from a sample.
        """
        query = aggregate_query(analyzed_plan(data))
        exact = ExactQuery(query.plan.data(data.sparkSession), query.outputs)
        return cls(SampledSource.of(data.sparkSession, query, exact.data), exact, request)

    @property
    def _spark(self) -> SparkSession:
        return self.source.spark

    @property
    def _may_be_exact(self) -> bool:
        return self.request.on_miss == EXACT and not self.request.dry_run

    @cached_property
    def _look_bytes(self) -> int:
        """Bytes that an exact answer reads in the time that the looks at samples take besides reading."""
        return APPROXIMATE_BYTES.of_conf(self._spark.conf.get) * self._spark.sparkContext.defaultParallelism

    def rows(self) -> list[ApproximateRow]:
        """Reads samples, and returns the answer.

        Raises:
            ToleranceNotMetError: the goal is not reached, and ``on_miss`` is ``error``.
        """
        if self._may_be_exact and self._of_columns(self.exact.bytes) < self._look_bytes:
            return self._exact_rows(
                f"its columns have about {size_text(self._of_columns(self.exact.bytes))}: below "
                f"{size_text(self._look_bytes)}, samples are not expected to be faster ({APPROXIMATE_BYTES.name} for "
                "each core)"
            )
        with described_jobs(self._spark, f"USE approximate: statistics of {self.source.table}"):
            estimation = self._estimation()
        names = ", ".join(name for name, _ in estimation.without_interval)
        if names and self.request.on_miss == ERROR:
            raise ToleranceNotMetError.no_interval(names, estimation.without_interval[0][1].why)
        if (names and self.request.on_miss == EXACT) or not estimation.terms:
            return (
                self._exact_rows(f"{names} has no interval from a sample")
                if self._may_be_exact
                else self._estimated_rows(estimation, [], [])
            )
        try:
            return self._sampled_rows(estimation)
        finally:
            for part in self._parts:
                part.unpersist()

    def _estimation(self) -> Estimation:
        source = self.source
        query = source.query
        snapshot = ManagedTable.find(self._spark, source.table).snapshot()
        facts = sample_facts(source.scan.configuration)
        indexed = facts.columns if facts is not None else ()
        if snapshot.version == source.version:
            values = [value for given in query.inputs if not given.counts for value in given.values]
            names = [column.name for column in source.columns_of(values)]
            bounds = TableBounds.of(snapshot, names, indexed)
        else:
            bounds = TableBounds(None, 0, {})
        ranges = ValueRanges(bounds, source.relation, source.definitions)
        of_inputs = [(1.0, 1.0) if given.counts else ranges.of(given.values[0]) for given in query.inputs]
        rows = bounds.rows if source.has_every_row else None
        return Estimation(query.outputs, of_inputs, rows, bounds.rows_without_key)

    def _sampled_rows(self, estimation: Estimation) -> list[ApproximateRow]:
        request = self.request
        shifts = [
            (low + high) / 2.0 if given.is_shifted and math.isfinite(low) and math.isfinite(high) else 0.0
            for given, (low, high) in zip(self.source.query.inputs, estimation.ranges, strict=True)
        ]
        shifted = Estimation(
            estimation.outputs,
            [(low - shift, high - shift) for (low, high), shift in zip(estimation.ranges, shifts, strict=True)],
            estimation.rows,
            estimation.rows_of_a_weight,
        )
        upper = min(FIRST_FRACTION, request.max_fraction)
        keys: Sequence[tuple[str | None, ...]] = ()
        made: list[Estimates] = []
        while True:
            expected_bytes = int((upper - self._fraction) * self.exact.bytes)
            part = self.source.rows(WeightRange.of_sample(self._fraction, upper), shifts, expected_bytes)
            part_bytes = bytes_to_read(part)
            would_read = self._bytes_read + part_bytes
            if self._is_exact_faster(would_read):
                return self._exact_rows(
                    f"samples of up to {upper:g} would read {size_text(would_read)}, all rows "
                    f"{size_text(self.exact.bytes)}"
                )
            self._bytes_read += part_bytes
            keys, made = self._step(shifted, part, upper)
            needed = _needed(made)
            is_met = bool(keys) and all(one.is_met.all() for one in made)
            if is_met or request.dry_run or upper >= request.max_fraction:
                break
            expected = 0.0 if math.isnan(needed) else min(_RESERVE * needed, 1.0)
            # Of a large table, a further look costs little, and shows better which fraction is needed.
            is_small = self._of_columns(self.exact.bytes) < _FEW_LOOKS * self._look_bytes
            if is_small and self._is_exact_faster(int(expected * self.exact.bytes)):
                return self._exact_rows(
                    f"a sample of {share_text(expected)} is expected to be needed, and not to be faster"
                )
            upper = next_fraction(upper, needed, request.max_fraction)
            if upper > request.max_fraction:
                if request.on_miss == EXACT:
                    break
                upper = request.max_fraction
        if not is_met and not request.dry_run:
            if request.on_miss == EXACT:
                return self._exact_rows(_missed(self._fraction, needed))
            if request.on_miss == ERROR:
                raise ToleranceNotMetError.of(self._fraction, request.max_fraction, _worst(made))
        return self._estimated_rows(estimation, keys, made)

    def _is_exact_faster(self, sampled_bytes: int) -> bool:
        """Whether an exact answer is expected to be faster than samples of so many bytes."""
        saved = self._of_columns(self.exact.bytes - sampled_bytes)
        return self._may_be_exact and self.exact.bytes > _SMALL_BYTES and saved <= self._look_bytes

    def _of_columns(self, bytes_of_files: int) -> int:
        return int(self.source.column_share * bytes_of_files)

    def _step(
        self, estimation: Estimation, part: DataFrame, upper: float
    ) -> tuple[Sequence[tuple[str | None, ...]], list[Estimates]]:
        """Reads the weights up to a fraction that no earlier step has read, and estimates from all."""
        with described_jobs(self._spark, f"USE approximate: reading {share_text(upper, 2)} of {self.source.table}"):
            part = private_rows(part).persist(StorageLevel.MEMORY_AND_DISK)
            # In the session of the newest part: it is the largest one, and the session fits its size.
            rows = part
            for other in self._parts:
                rows = rows.unionAll(other)
            self._parts.append(part)
            self._fraction = upper
            quantiles = [quantile for _, quantile in estimation.quantiles]
            sums = sample_sums(rows, len(self.source.query.keys), estimation.terms, quantiles)
            self._rows = int(sums.rows.sum())
            found = clusters(rows, sums, estimation.influences(sums, upper))
        made = estimation.estimates(sums, found, upper, self.request.goal)
        logger.info("%.4g of %s was read; %.4g is expected to be needed", upper, self.source.table, _needed(made))
        return sums.keys, made

    @property
    def _reading(self) -> Reading:
        return Reading(self._fraction, self._rows, self._bytes_read, self.exact.bytes)

    def _estimated_rows(
        self, estimation: Estimation, keys: Sequence[tuple[str | None, ...]], made: Sequence[Estimates]
    ) -> list[ApproximateRow]:
        confidence = self.request.goal.confidence
        return estimated_rows(
            estimation, keys, made, self._reading, confidence, is_grouped=bool(self.source.query.keys)
        )

    def _exact_rows(self, why: str) -> list[ApproximateRow]:
        logger.info("The query on %s is answered exactly: %s", self.source.table, why)
        with described_jobs(self._spark, f"USE approximate: exact answer from {self.source.table}"):
            values = list(self.exact.values())
        self._bytes_read += self.exact.bytes
        self._fraction = 1.0
        return exact_rows(values, why, self._reading)


def next_fraction(upper: float, needed: float, most: float) -> float:
    """Returns the fraction that the next look reads, at most 1.

    Args:
        upper: fraction that was read.
        needed: fraction that is expected to be needed; NaN if unknown.
        most: the largest fraction that is read.
    """
    if math.isnan(needed):
        return min(_MOST_GROWTH / 2 * upper, 1.0)
    reserved = min(max(_RESERVE * needed, _LEAST_GROWTH * upper), _MOST_GROWTH * upper, 1.0)
    if reserved > most and upper < _PILOT_FRACTION <= most:
        return _PILOT_FRACTION
    digits = 2 - math.ceil(math.log10(reserved))
    return min(math.ceil(reserved * 10.0**digits) / 10.0**digits, 1.0)


def _needed(made: Iterable[Estimates]) -> float:
    """The fraction that all intervals are expected to need; NaN if there is none, or one is not known."""
    needed = np.concatenate([np.where(one.is_met, 0.0, one.needed) for one in made] or [np.array([np.nan])])
    return float(needed.max()) if len(needed) else math.nan


def _worst(made: Iterable[Estimates]) -> Iterator[str]:
    return (one.name for one in made if not one.is_met.all())


def _missed(fraction: float, needed: float) -> str:
    expected = "" if math.isnan(needed) else f"; {min(needed, 1.0):.2g} is expected to be needed"
    return f"a sample of {fraction:g} does not reach the tolerance{expected}"
