"""The live files of a version as arrays: sizes, rows, and the range of each column in each file, from the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from catalog.predicates.conditions import Comparison, Unknown, visit
from catalog.predicates.operators import BOUND_TESTS, FUNCTIONS, IS_NOT_NULL, IS_NULL
from procedures.insight.recommendation.conditions import QueryCondition
from sql_ext.diagnosis.ordered_values import ordered_values
from sql_ext.readers.delta_files import DeltaFiles
from sql_ext.readers.table_columns import Column


@dataclass(frozen=True, eq=False)
class Bounds:
    """The range of a column in each file.

    Attributes:
        low: smallest value per file, in the order of ``ordered_values``.
        high: largest value.
        is_known: whether the file has both.
        may_have_null: whether a value may be null.
        may_have_value: whether a value may be other than null.
    """

    low: NDArray[Any]
    high: NDArray[Any]
    is_known: NDArray[np.bool_]
    may_have_null: NDArray[np.bool_]
    may_have_value: NDArray[np.bool_]

    def may_hold(self, comparison: Comparison[str]) -> NDArray[np.bool_]:
        """Returns per file whether a row may satisfy a comparison, whose values are ordered ones."""
        if comparison.operator == IS_NULL:
            return self.may_have_null
        if comparison.operator == IS_NOT_NULL:
            return self.may_have_value
        ends = {"low": self.low, "high": self.high}
        kept = np.zeros(len(self.low), bool)
        for value in comparison.values:
            # numpy's own strings lose zero bytes at their end.
            literal = np.array(value, self.low.dtype)
            tests = (FUNCTIONS[test](ends[end], literal) for end, test in BOUND_TESTS[comparison.operator])
            kept |= np.logical_and.reduce([np.asarray(test, bool) for test in tests])
        return (kept | ~self.is_known) & self.may_have_value


@dataclass(frozen=True, eq=False)
class FileBounds:
    """The live files of a version.

    Attributes:
        paths: as in the log.
        sizes: bytes per file.
        rows: rows per file; -1 where the log does not have them.
        columns: the range of each column with statistics, and of each partition column, by name.
    """

    paths: NDArray[Any]
    sizes: NDArray[np.int64]
    rows: NDArray[np.int64]
    columns: Mapping[str, Bounds]

    @classmethod
    def of(cls, table: DeltaFiles, columns: Sequence[Column]) -> FileBounds:
        """Reads the log.

        Args:
            table: a version.
            columns: the columns whose ranges are wanted.

        Raises:
            FileSystemError: the log cannot be read.
        """
        actions = table.actions
        rows = pc.fill_null(_column(actions, "num_records", pa.int64()), -1).to_numpy(zero_copy_only=False)
        found = {}
        for column in columns:
            bounds = _bounds(actions, column, rows)
            if bounds is not None:
                found[column.name] = bounds
        paths = _column(actions, "path", pa.string()).to_numpy(zero_copy_only=False)
        return cls(paths, _column(actions, "size_bytes", pa.int64()).to_numpy(), rows, found)

    @property
    def count(self) -> int:
        """Number of files."""
        return len(self.sizes)

    @property
    def bytes(self) -> int:
        """Size of all files."""
        return int(self.sizes.sum())

    @property
    def row_count(self) -> int | None:
        """Number of rows with deleted ones; None if a file does not tell its own."""
        return None if bool((self.rows < 0).any()) else int(self.rows.sum())

    def may_match(self, condition: QueryCondition) -> NDArray[np.bool_]:
        """Returns per file whether a row may satisfy a condition."""
        every, none = np.ones(self.count, bool), np.zeros(self.count, bool)

        def leaf(node: Comparison[str] | Unknown, _: bool) -> NDArray[np.bool_]:
            if isinstance(node, Unknown) or node.column not in self.columns:
                return every
            return self.columns[node.column].may_hold(node)

        return visit(
            condition,
            leaf,
            lambda parts: np.logical_and.reduce([every, *parts]),
            lambda parts: np.logical_or.reduce([none, *parts]),
        )

    def share_of(self, kept: NDArray[np.bool_]) -> float:
        """Returns the share of the bytes in some files."""
        return float(self.sizes[kept].sum() / max(self.bytes, 1))


def _column(actions: pa.Table, name: str, kind: pa.DataType) -> pa.Array:
    if name not in actions.column_names:
        return pa.nulls(actions.num_rows, kind)
    array = actions.column(name)
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _field(actions: pa.Table, group: str, path: Sequence[str]) -> pa.Array | None:
    """The statistic of a column; None if no file has it."""
    if group not in actions.column_names:
        return None
    array = _column(actions, group, pa.null())
    for name in path:
        if not pa.types.is_struct(array.type) or array.type.get_field_index(name) < 0:
            return None
        array = pc.struct_field(array, name)
    return array


def _bounds(actions: pa.Table, column: Column, rows: NDArray[np.int64]) -> Bounds | None:
    for path in (column.path, column.stored_path):
        partition = _field(actions, "partition", path)
        if partition is not None:
            values, nulls = ordered_values(partition)
            return Bounds(values, values, ~nulls, nulls, ~nulls)
    low, high = (_field(actions, group, column.stored_path) for group in ("min", "max"))
    if low is None or high is None or pa.types.is_struct(low.type):
        return None
    (smallest, no_low), (largest, no_high) = ordered_values(low), ordered_values(high)
    counted = _field(actions, "null_count", column.stored_path)
    if counted is None or not pa.types.is_integer(counted.type):
        nulls = np.full(len(rows), -1)
    else:
        nulls = pc.fill_null(counted, -1).to_numpy(zero_copy_only=False)
    has_value = (nulls < 0) | (rows < 0) | (nulls < rows)
    return Bounds(smallest, largest, ~(no_low | no_high), nulls != 0, has_value)
