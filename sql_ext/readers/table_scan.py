"""Scans of a table without Spark: a plan of the files, and their rows in the forms of other libraries."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from catalog.errors import InvalidArgumentError, MissingPackageError, NotSupportedError
from catalog.predicates.conditions import AllOf, Comparison, leaves
from catalog.predicates.index_conditions import IndexCondition, RowHash
from catalog.pruning.read_planning import plan_read, plan_sample
from otree.weight import MAX_WEIGHT, MIN_WEIGHT
from sql_ext.draws import checked_bounds
from sql_ext.readers.arguments import checked_location, checked_storage_options
from sql_ext.readers.delta_files import DeltaFile, DeltaFiles, reading
from sql_ext.readers.file_selection import IndexedFiles
from sql_ext.readers.file_statistics import file_test
from sql_ext.readers.legacy_calendar import LegacyCalendar
from sql_ext.readers.row_conditions import RowCondition, index_condition, parsed
from sql_ext.readers.row_masks import mask_of
from sql_ext.readers.spark_hash import hash_of
from sql_ext.readers.table_columns import (
    Column,
    TableColumns,
    as_read,
    has_char_inside,
    has_ids_of_log,
    name_in_file,
    padded,
)

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow.dataset as ds

_BATCH_ROWS = 65_536
_LAST_VERSION = 2**63 - 1


@dataclass(frozen=True)
class _Weights:
    """The weights of a sample, first and last, and the columns whose hash they are."""

    columns: tuple[Column, ...]
    first: int
    last: int


@dataclass(frozen=True, eq=False)
class Scan:
    """A plan: which files are read, and which of their rows.

    Attributes:
        location: path or URL of the table.
        version: version that is read.
        files: number of files to read.
        bytes: their size.
        table_files: number of files of the table.
        table_bytes: their size.
        columns: names of the columns, in order.
    """

    location: str
    version: int
    files: int
    bytes: int
    table_files: int
    table_bytes: int
    columns: tuple[str, ...]
    _table: DeltaFiles
    _files: tuple[DeltaFile, ...]
    _condition: RowCondition | None
    _weights: _Weights | None

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths of the files to read, as in the log."""
        return tuple(file.path for file in self._files)

    @property
    def schema(self) -> pa.Schema:
        """The columns in Arrow's types."""
        whole = self._table.columns.schema
        return pa.schema([whole.field(name) for name in self.columns])

    # ------------------------------------------------------------------------------------------------- rows

    def to_batches(self) -> pa.RecordBatchReader:
        """Returns the rows as a stream of batches; files are read one after another."""
        return pa.RecordBatchReader.from_batches(self.schema, self._batches(self.columns))

    def to_table(self) -> pa.Table:
        """Returns the rows as an Arrow table."""
        return pa.Table.from_batches(self._batches(self.columns), self.schema)

    def to_dataset(self) -> ds.Dataset:
        """Returns the rows as an Arrow dataset in memory, which can be scanned more than once."""
        import pyarrow.dataset as ds

        return ds.dataset(self.to_table())

    def to_pandas(self) -> pd.DataFrame:
        """Returns the rows as a pandas DataFrame.

        Raises:
            NotSupportedError: a value is outside of the types of pandas, such as a date after the year 9999.
        """
        table = self.to_table()
        try:
            return table.to_pandas()
        except (ValueError, OverflowError, pa.ArrowException) as error:
            raise NotSupportedError(
                f"pandas cannot hold the rows of {self.location} ({error}): use to_table."
            ) from error

    def to_polars(self) -> Any:
        """Returns the rows as a Polars LazyFrame, which reads only the columns that a query needs.

        Raises:
            MissingPackageError: Polars is not installed.
        """
        try:
            import polars as pl
            from polars.io.plugins import register_io_source
        except ImportError as error:
            raise MissingPackageError.of("polars", "readers") from error

        def source(
            with_columns: list[str] | None, predicate: Any, n_rows: int | None, _batch_size: int | None
        ) -> Iterator[Any]:
            names = self.columns if with_columns is None else tuple(with_columns)
            left = n_rows
            for batch in self._batches(names):
                frame = pl.from_arrow(pa.Table.from_batches([batch]))
                frame = frame if left is None else frame.head(left)
                left = None if left is None else left - len(frame)
                yield frame if predicate is None else frame.filter(predicate)
                if left is not None and left <= 0:
                    return

        return register_io_source(source, schema=pl.DataFrame(self.schema.empty_table()).schema)

    def to_duckdb(self, connection: Any = None) -> Any:
        """Returns the rows as a DuckDB relation over a table in memory, which can be queried more than once.

        Args:
            connection: of DuckDB; its default connection if None.

        Raises:
            MissingPackageError: DuckDB is not installed.
        """
        try:
            import duckdb
        except ImportError as error:
            raise MissingPackageError.of("duckdb", "readers") from error
        return (connection or duckdb).from_arrow(self.to_table())

    def _batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        whole = self._table.columns.schema
        schema = pa.schema([whole.field(name) for name in names])
        for file in self._files:
            for columns, rows in self._rows_of(file, names):
                arrays = [columns[name] for name in names]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema) if arrays else _empty_rows(rows)

    def _rows_of(self, file: DeltaFile, names: Sequence[str]) -> Iterator[tuple[dict[str, pa.Array], int]]:
        """Columns of the rows of a file that are asked for, and the number of rows, batch by batch."""
        filters = _columns_of_filters(self._condition, self._weights)
        needed = list(dict.fromkeys([*names, *(column.path[0] for column in filters)]))
        position = 0
        with reading(self.location), self._table.open(file) as source:
            deleted = self._table.deleted_rows(file)
            parquet = pq.ParquetFile(source, coerce_int96_timestamp_unit="us")
            stored = self._stored(parquet, needed)
            calendar = LegacyCalendar.of(parquet)
            for batch in parquet.iter_batches(_BATCH_ROWS, columns=list(stored.values())):
                if calendar is not None:
                    for name, inside in stored.items():
                        path = f"{self.location}/{file.path}"
                        calendar.check(batch.column(inside), self._table.columns.field(name), path)
                columns = {name: self._values(name, batch, file, stored.get(name)) for name in needed}
                live = _live(deleted, position, batch.num_rows)
                position += batch.num_rows
                mask = self._mask(columns, batch.num_rows, live)
                count = batch.num_rows if mask is None else int(mask.sum())
                if mask is not None:
                    columns = {name: array.filter(pa.array(mask)) for name, array in columns.items()}
                if count:
                    yield columns, count

    def _stored(self, parquet: pq.ParquetFile, names: Sequence[str]) -> dict[str, str]:
        """Names in the file of the columns that it has, by their names for users."""
        schema, columns = parquet.schema_arrow, self._table.columns
        fields = {name: columns.field(name) for name in names if name not in columns.partitioned_by}
        is_by_id = self._table.configuration.get("delta.columnMapping.mode") == "id"
        if is_by_id and not has_ids_of_log(list(fields.values()), list(schema)):
            raise NotSupportedError(
                f"{self.location} maps columns by ids that its files do not name: read it with Spark."
            )
        found = {name: name_in_file(field, schema.names) for name, field in fields.items()}
        return {name: stored for name, stored in found.items() if stored is not None}

    def _values(self, name: str, batch: pa.RecordBatch, file: DeltaFile, stored: str | None) -> pa.Array:
        kind = self._table.columns.schema.field(name).type
        field = self._table.columns.field(name)
        if name in self._table.columns.partitioned_by:
            value = pa.scalar(file.partition[name], kind)
            return padded(pa.repeat(value, batch.num_rows), self._table.columns.find([name]).width)
        if stored is None:
            return pa.nulls(batch.num_rows, kind)
        return padded(as_read(batch.column(stored), field["type"]), self._table.columns.find([name]).width)

    def _mask(
        self, columns: Mapping[str, pa.Array], rows: int, live: NDArray[np.bool_] | None
    ) -> NDArray[np.bool_] | None:
        mask = live

        def value(column: Column) -> pa.Array:
            array = columns[column.path[0]]
            for name in column.path[1:]:
                array = pa.compute.struct_field(array, name)
            return array

        if self._weights is not None:
            weights = hash_of([value(column) for column in self._weights.columns], rows)
            within = (weights >= self._weights.first) & (weights <= self._weights.last)
            mask = within if mask is None else mask & within
        if self._condition is not None:
            true = pa.compute.fill_null(mask_of(self._condition, value, rows), fill_value=False)
            chosen = np.asarray(true.to_numpy(zero_copy_only=False), dtype=np.bool_)
            mask = chosen if mask is None else mask & chosen
        return mask


def _columns_of_filters(condition: RowCondition | None, weights: _Weights | None) -> tuple[Column, ...]:
    comparisons = leaves(condition) if condition is not None else ()
    of_condition = [leaf.column for leaf in comparisons if isinstance(leaf, Comparison)]
    return (*of_condition, *(weights.columns if weights is not None else ()))


def _live(deleted: NDArray[np.int64], start: int, rows: int) -> NDArray[np.bool_] | None:
    """Which rows of a batch are live; None without deleted rows."""
    first, end = np.searchsorted(deleted, (start, start + rows))
    if first == end:
        return None
    live = np.ones(rows, dtype=np.bool_)
    live[deleted[first:end] - start] = False
    return live


def _empty_rows(rows: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))


def scan(
    path: str | PathLike[str],
    fraction: float | None = None,
    where: str | None = None,
    columns: Sequence[str] | None = None,
    *,
    draw: int = 1,
    version: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Scan:
    """Plans a read of a sample, of a box, or of both, without Spark.

    Only files that may have rows of the sample and the condition are opened. The rows are those that Spark returns for
    the same sample and condition of the same version.

    Args:
        path: path or URL of the table, as text or a ``pathlib.Path``.
        fraction: of the rows, above 0, at most 1; all rows if None.
        where: condition on rows, see ``sql_ext.readers.row_conditions``.
        columns: names of the columns to return; all if None.
        draw: number of the sample, from 1 to the whole part of ``1 / fraction``; samples share no row.
        version: of the table; the newest if None.
        storage_options: for object stores, as deltalake takes them.

    Returns:
        The plan; nothing but the log is read yet.

    Raises:
        InvalidArgumentError: an argument is not accepted; the message names it.
        UnknownNameError: there is no such column.
        TableError: there is no table.
        VersionError: there is no such version.
        NotSupportedError: the table needs Spark, or has no index although a sample is asked for.
        MissingPackageError: deltalake is not installed.
    """
    bounds = _bounds(fraction, draw)
    _check_version(version)
    if columns is not None:
        _check_columns(columns)
    location = checked_location("path", path, "the path or URL of a table")
    options = checked_storage_options(storage_options)
    table = DeltaFiles.of(location, None if version is None else int(version), options)
    names = tuple(table.columns.schema.names)
    if columns is not None:
        names = tuple(table.columns.find([name]).path[0] for name in columns)
        twice = next((name for number, name in enumerate(names) if name in names[:number]), None)
        if twice is not None:
            raise InvalidArgumentError.of("columns", str(columns), f"each column once; {twice} is there twice")
    condition = None if where is None else parsed(where, table.columns.find)
    weights = None if bounds is None else _weights(table, *bounds)
    _check_char(table, [*names, *(column.path[0] for column in _columns_of_filters(condition, weights))])
    indexed = IndexedFiles(
        plan_read(json.dumps(dict(table.configuration)), _read_condition(condition, weights, table.columns))
    )
    may_match = file_test(AllOf(()) if condition is None else condition)
    chosen = tuple(file for file in table.files if may_match(file) and indexed.may_have_rows(file.tags))
    return Scan(
        location,
        table.version,
        len(chosen),
        sum(file.bytes for file in chosen),
        len(table.files),
        sum(file.bytes for file in table.files),
        names,
        table,
        chosen,
        condition,
        weights,
    )


def _bounds(fraction: float | None, draw: int) -> tuple[float, float] | None:
    if fraction is None:
        if draw != 1:
            raise InvalidArgumentError.of("draw", str(draw), "nothing without a fraction")
        return None
    return checked_bounds(fraction, draw)


def _check_version(version: Any) -> None:
    is_whole = isinstance(version, Integral) and not isinstance(version, bool)
    if version is not None and not (is_whole and 0 <= version <= _LAST_VERSION):
        raise InvalidArgumentError.of("version", version, "the number of a version, 0 or more")


def _check_columns(columns: Any) -> None:
    is_list = isinstance(columns, Sequence) and not isinstance(columns, (str, bytes))
    if not is_list or not columns or not all(isinstance(name, str) for name in columns):
        raise InvalidArgumentError.of("columns", str(columns), "a list of names of columns")


def _check_char(table: DeltaFiles, names: Sequence[str]) -> None:
    for name in names:
        if has_char_inside(table.columns.field(name)):
            raise NotSupportedError(
                f"{table.location} has CHAR(n) inside of the column {name}, whose values Spark pads: read other "
                "columns, or read it with Spark."
            )


def _weights(table: DeltaFiles, lower: float, upper: float) -> _Weights | None:
    answer = json.loads(plan_sample(json.dumps(dict(table.configuration)), lower, upper))
    if "reason" in answer:
        raise NotSupportedError(f"{table.location} cannot be sampled ({answer['reason']}): {answer['detail']}.")
    ambiguous = [name for name in answer["columns"] if table.columns.is_ambiguous(name)]
    if ambiguous:
        names = ", ".join(ambiguous)
        raise NotSupportedError(f"{table.location} cannot be sampled: several of its columns are called {names}.")
    columns = [table.columns.find_stored(name) for name in answer["columns"]]
    known = tuple(column for column in columns if column is not None)
    if len(known) < len(columns):
        raise NotSupportedError(f"{table.location} cannot be sampled (MISSING_COLUMN): an indexed column was dropped.")
    first = MIN_WEIGHT if answer["first"] is None else answer["first"]
    last = MAX_WEIGHT if answer["last"] is None else answer["last"]
    return None if (first, last) == (MIN_WEIGHT, MAX_WEIGHT) else _Weights(known, first, last)


def _read_condition(condition: RowCondition | None, weights: _Weights | None, columns: TableColumns) -> IndexCondition:
    parts: list[IndexCondition] = [] if condition is None else [index_condition(condition, columns)]
    if weights is not None:
        of = RowHash(tuple(c.stored_name for c in weights.columns), tuple(c.sql_type for c in weights.columns))
        parts += [Comparison(of, ">=", (weights.first,)), Comparison(of, "<=", (weights.last,))]
    return AllOf(tuple(parts))
