"""Simulation of a layout on a sample of rows: the files that a rewrite writes, and those that queries read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from catalog.predicates.conditions import Comparison, Unknown, visit
from catalog.predicates.operators import IS_NOT_NULL, IS_NULL
from otree.curve import Ranks, bits_per_dimension, hilbert_keys
from otree.packing import Packing, pack
from otree.weight import weight_of
from procedures.insight.recommendation.conditions import QueryCondition
from procedures.insight.recommendation.file_ranges import FileRanges
from procedures.insight.recommendation.workload import Workload, WorkloadQuery

# With fewer sampled rows per file, the ranges of simulated files would be too narrow.
_ROWS_PER_FILE = 50
_SEED = 42
_QUANTILES = 1_001


@dataclass(frozen=True, eq=False)
class SampledColumn:
    """Values of a column in the sample.

    Attributes:
        values: per row a double or bytes, in the column's order; any value where it is null.
        nulls: per row whether the value is null.
        hashes: per row Spark's hash of the value.
        smallest: smallest value of all rows of the table; None if it is not known.
        largest: largest one, likewise.
    """

    values: NDArray[Any]
    nulls: NDArray[np.bool_]
    hashes: NDArray[np.int32]
    smallest: Any = None
    largest: Any = None

    @cached_property
    def distinct(self) -> NDArray[Any]:
        """The non-null values in ascending order, each once."""
        return np.unique(self.values[~self.nulls])

    @cached_property
    def quantiles(self) -> list[Any]:
        """About 1,000 of the non-null values in ascending order, evenly spaced by rank; empty without values."""
        values = np.sort(self.values[~self.nulls])
        places = np.linspace(0, len(values) - 1, min(len(values), _QUANTILES)).round().astype(np.int64)
        return [values[place] for place in places]

    @cached_property
    def ranks(self) -> NDArray[np.int64]:
        """The place of each row's value in ``distinct``; 0 where it is null."""
        ranks = np.zeros(len(self.values), np.int64)
        ranks[~self.nulls] = np.searchsorted(self.distinct, self.values[~self.nulls])
        return ranks

    def place_of(self, value: Any) -> tuple[float, bool]:
        """Returns the place of a value among the distinct ones, and whether it is one of them.

        A value that the sample lacks has a place between two others. If it is beyond the sampled values and not beyond
        those of the table, it has the place of the nearest one.
        """
        # An array of objects, because numpy's own strings lose zero bytes at their end.
        wanted = np.array([value], self.distinct.dtype)
        left, right = (int(np.searchsorted(self.distinct, wanted, side=side)[0]) for side in ("left", "right"))
        if left < right:
            return float(left), True
        last = len(self.distinct) - 1
        if left > last and self.largest is not None and value <= self.largest:
            return float(last), False
        if right == 0 and self.smallest is not None and value >= self.smallest:
            return 0.0, False
        return left - 0.5, False


@dataclass(frozen=True, eq=False)
class TableSample:
    """A random sample of a table's rows.

    Attributes:
        columns: columns by name.
        partitions: names of the partition columns among them.
        rows: number of rows of the table.
        target_rows: rows of a file of the target size.
        hash_of: returns Spark's hash of some columns together; None if only that of each column is known.
    """

    columns: Mapping[str, SampledColumn]
    partitions: tuple[str, ...]
    rows: int
    target_rows: int
    hash_of: Callable[[Sequence[str]], NDArray[np.int32]] | None = None

    @property
    def size(self) -> int:
        """Number of sampled rows."""
        return len(next(iter(self.columns.values())).values)

    @property
    def simulated_target(self) -> int:
        """Rows of a simulated file: those of the target, or more where the sample is too small for so many files."""
        return max(self.target_rows, -(-self.rows * _ROWS_PER_FILE // max(self.size, 1)))

    def weights(self, names: Sequence[str]) -> NDArray[np.int32]:
        """Returns the weights of the rows under an index, or numbers that are as evenly distributed and equal as these.

        Args:
            names: of the index columns.
        """
        if self.hash_of is not None:
            return self.hash_of(names)
        return combined_weights([self.columns[name].hashes for name in names])


def indexed_files(sample: TableSample, columns: Sequence[str]) -> SimulatedFiles:
    """Simulates the files of a rewrite with some index columns.

    Args:
        sample: a sample of the table.
        columns: names of the index columns.
    """
    bits = bits_per_dimension(len(columns))
    codes = []
    for column in (sample.columns[name] for name in columns):
        known = column.values[~column.nulls]
        code = np.zeros(sample.size, np.int32)
        code[~column.nulls] = Ranks.of_sample(known, bits).codes_of(known)
        codes.append(code)
    keys = hilbert_keys(codes, bits)
    weights = sample.weights(columns)
    packing = pack(weights, keys, sample.rows, sample.simulated_target)
    return SimulatedFiles.of(sample, _files_of(packing, weights, keys), weights)


def unordered_files(sample: TableSample) -> SimulatedFiles:
    """Simulates files of the target size with rows in random order."""
    order = np.random.default_rng(_SEED).permutation(sample.size)
    files = max(1, round(sample.rows / sample.simulated_target))
    return SimulatedFiles.of(sample, order * files // max(sample.size, 1), None)


def combined_weights(hashes: Sequence[NDArray[np.int32]]) -> NDArray[np.int32]:
    """Returns weights that are equal where all hashes are. Those of one column are Spark's own."""
    combined = hashes[0].astype(np.uint32)
    for more in hashes[1:]:
        combined = combined * np.uint32(0x9E3779B1) ^ more.astype(np.uint32)
        for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
            combined = (combined ^ combined >> np.uint32(shift)) * np.uint32(factor)
        combined ^= combined >> np.uint32(16)
    return combined.view(np.int32)


def _files_of(packing: Packing, weights: NDArray[np.int32], keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the file of each row."""
    firsts = np.array([band.first_weight for band in packing.bands])
    bands = np.maximum(np.searchsorted(firsts, weights, side="right") - 1, 0)
    spread = np.random.default_rng(_SEED).integers(0, 1 << 30, len(keys))
    files = np.zeros(len(keys), np.int64)
    for number, band in enumerate(packing.bands):
        rows = bands == number
        first_keys = np.array([run.first_key for run in band.runs])
        run = np.maximum(np.searchsorted(first_keys, keys[rows], side="right") - 1, 0)
        first_file = np.array([run.first_file for run in band.runs])
        width = np.array([run.width for run in band.runs])
        files[rows] = first_file[run] + spread[rows] % width[run]
    return files


@dataclass(frozen=True, eq=False)
class SimulatedFiles:
    """Files with their shares of the rows and the ranges of their columns.

    Attributes:
        sample: the sample.
        order: rows of the sample, file by file.
        starts: per file its first place in ``order``.
        shares: per file its share of the rows.
        smallest_weights: per file its smallest weight; None without an index.
    """

    sample: TableSample
    order: NDArray[np.int64]
    starts: NDArray[np.int64]
    shares: NDArray[np.float64]
    smallest_weights: NDArray[np.int32] | None

    @classmethod
    def of(cls, sample: TableSample, files: NDArray[np.int64], weights: NDArray[np.int32] | None) -> SimulatedFiles:
        """Makes files of the file number of each row. Rows of different partitions never share a file."""
        for name in sample.partitions:
            ranks = np.where(sample.columns[name].nulls, -1, sample.columns[name].ranks) + 1
            files = np.unique(files * (int(ranks.max()) + 1) + ranks, return_inverse=True)[1]
        order = np.argsort(files, kind="stable")
        starts = np.flatnonzero(np.diff(files[order], prepend=-1))
        shares = np.diff(starts, append=len(order)) / len(order)
        smallest = None if weights is None else np.minimum.reduceat(weights[order], starts)
        return cls(sample, order, starts, shares, smallest)

    @property
    def count(self) -> int:
        """Number of files."""
        return len(self.starts)

    def share_read(self, query: WorkloadQuery) -> float:
        """Returns the share of the rows in files that a query reads."""
        kept = self.may_match(query.condition)
        if self.smallest_weights is not None and query.fraction < 1.0:
            kept = kept & (self.smallest_weights <= weight_of(query.fraction))
        return float(self.shares[kept].sum())

    def mean_share(self, workload: Workload) -> float:
        """Returns the weighted mean of the shares that the queries read."""
        total = sum(query.weight for query in workload.queries)
        return sum(self.share_read(query) * query.weight for query in workload.queries) / total

    def may_match(self, condition: QueryCondition) -> NDArray[np.bool_]:
        """Returns per file whether a row in it may satisfy the condition, as the ranges of its columns tell."""
        every, none = np.ones(self.count, bool), np.zeros(self.count, bool)

        def leaf(node: Comparison[str] | Unknown, _: bool) -> NDArray[np.bool_]:
            return every if isinstance(node, Unknown) else self._may_match_comparison(node)

        return visit(
            condition,
            leaf,
            lambda parts: np.logical_and.reduce([every, *parts]),
            lambda parts: np.logical_or.reduce([none, *parts]),
        )

    def _may_match_comparison(self, comparison: Comparison[str]) -> NDArray[np.bool_]:
        ranges = self._ranges(comparison.column)
        if comparison.operator == IS_NULL:
            return ranges.has_null
        if comparison.operator == IS_NOT_NULL:
            return ranges.has_value
        column = self.sample.columns[comparison.column]
        kept = np.zeros(self.count, bool)
        for value in comparison.values:
            place, is_sampled = column.place_of(value)
            kept |= ranges.may_have(comparison.operator, place, is_sampled=is_sampled)
        return kept & ranges.has_value

    def _ranges(self, name: str) -> FileRanges:
        if name not in self._known_ranges:
            column = self.sample.columns[name]
            unseen = max(0.0, 1.0 - self.sample.size / max(self.sample.rows, 1))
            self._known_ranges[name] = FileRanges.of_rows(
                column.ranks[self.order], column.nulls[self.order], self.starts, unseen, len(column.distinct) - 1
            )
        return self._known_ranges[name]

    @cached_property
    def _known_ranges(self) -> dict[str, FileRanges]:
        return {}
