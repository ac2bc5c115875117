"""A bounded sample of a table's rows: the beginnings of random row groups, of the columns that matter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from catalog.errors import NotSupportedError, UseError
from procedures.insight.recommendation.simulated_layout import SampledColumn, TableSample
from sql_ext.diagnosis.file_bounds import FileBounds
from sql_ext.diagnosis.ordered_values import ordered_values
from sql_ext.diagnosis.parquet_pages import Pages, pages_of
from sql_ext.readers.delta_files import DeltaFiles, reading
from sql_ext.readers.spark_hash import hash_of
from sql_ext.readers.table_columns import Column, arrow_type, as_read

_SEED = 42
_MOST_DECODED_ROWS = 2_000_000
_LEAST_ROWS_OF_GROUP = 8_192
# Less than a page has no fewer bytes.
_FEWEST_ROWS = 500
_BUFFER_BYTES = 256 * 1024
_FILES_WITH_PAGES = 16
_THREADS = 8


@dataclass(frozen=True, eq=False)
class RowSample:
    """Sampled rows and the page indexes of the files that they are from.

    Attributes:
        table: the rows.
        pages: per column the place of a file in ``FileBounds`` and its pages; files without a page index are left out.
        read_bytes: about how many bytes of column chunks were read.
        problems: one text per file that could not be read.
    """

    table: TableSample
    pages: Mapping[str, Sequence[tuple[int, Pages]]]
    read_bytes: int
    problems: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _Part:
    """What one file gives: columns of sampled rows as Arrow arrays."""

    file: int
    arrays: Mapping[str, pa.Array]
    rows: int
    pages: Mapping[str, Pages]
    bytes: int
    problem: str | None = None


@dataclass(frozen=True)
class Wanted:
    """What a sample should have.

    Attributes:
        rows: number of rows.
        groups: number of row groups, of different files where there are so many.
        bytes: of column chunks to read at most.
        target_file_bytes: size of the files that an index would have.
    """

    rows: int
    groups: int
    bytes: int
    target_file_bytes: int


def take_row_sample(
    table: DeltaFiles, files: FileBounds, columns: Sequence[Column], partitions: Sequence[Column], wanted: Wanted
) -> RowSample:
    """Takes a sample; the same version gives the same one.

    Args:
        table: a version.
        files: its live files, at least one.
        columns: columns that are no partition columns.
        partitions: partition columns.
        wanted: what it should have.

    Raises:
        UseError: no file could be read.
    """
    chosen = _chosen_files(files, wanted.groups)
    groups = -(-wanted.groups // len(chosen))
    reader = _FileReader(table, files, tuple(columns), tuple(partitions), groups, len(chosen), wanted)
    with ThreadPoolExecutor(_THREADS) as pool:
        parts = list(pool.map(reader.read, chosen, range(len(chosen))))
    readable = [part for part in parts if part.rows]
    problems = tuple(part.problem for part in parts if part.problem is not None)
    if not readable:
        raise NotSupportedError(f"No file of {table.location} has rows that can be read: {'; '.join(problems[:1])}")
    return RowSample(
        _table_sample(readable, files, [*columns, *partitions], partitions, wanted),
        _pages_by_column(readable, columns),
        sum(part.bytes for part in readable),
        problems,
    )


def _chosen_files(files: FileBounds, most: int) -> list[int]:
    """Random files, larger ones more probably."""
    chance, sizes = np.random.default_rng(_SEED), files.sizes.astype(np.float64) + 1.0
    if files.count <= most:
        return list(range(files.count))
    return [int(n) for n in chance.choice(files.count, most, replace=False, p=sizes / sizes.sum())]


@dataclass(frozen=True, eq=False)
class _FileReader:
    table: DeltaFiles
    files: FileBounds
    columns: tuple[Column, ...]
    partitions: tuple[Column, ...]
    groups: int
    chosen: int
    wanted: Wanted

    def read(self, file: int, place: int) -> _Part:
        """Reads the beginnings of some row groups of a file."""
        try:
            with reading(self.table.location), self.table.open_path(str(self.files.paths[file])) as source:
                return self._read(source, file, has_pages=place < _FILES_WITH_PAGES)
        except UseError as error:
            return _Part(file, {}, 0, {}, 0, error.message)

    def _read(self, source: pa.NativeFile, file: int, *, has_pages: bool) -> _Part:
        # With a buffer, a column chunk is read as far as its rows are needed, and not whole.
        parquet = pq.ParquetFile(source, coerce_int96_timestamp_unit="us", buffer_size=_BUFFER_BYTES)
        names = {".".join(column.stored_path): column for column in self.columns}
        stored = {parquet.schema.column(n).path for n in range(len(parquet.schema))}
        present = [name for name in names if name in stored]
        chance = np.random.default_rng(_SEED + file)
        count = parquet.metadata.num_row_groups
        groups = sorted(int(n) for n in chance.choice(count, min(count, self.groups), replace=False)) if count else []
        most = max(_LEAST_ROWS_OF_GROUP, _MOST_DECODED_ROWS // (self.chosen * max(len(groups), 1)))
        batches: list[pa.RecordBatch] = []
        read, allowed = 0, self.wanted.bytes / self.chosen
        for group in groups:
            rows = max(parquet.metadata.row_group(group).num_rows, 1)
            cost_of_row = max(_bytes_of(parquet, group, present) / rows, 1e-9)
            affordable = int((allowed - read) / cost_of_row)
            if batches and affordable < _FEWEST_ROWS:
                break
            batch = next(parquet.iter_batches(max(min(most, affordable), _FEWEST_ROWS), [group], columns=present), None)
            if batch is not None:
                batches.append(batch)
                read += int(cost_of_row * batch.num_rows)
        if not batches:
            return _Part(file, {}, 0, {}, 0)
        rows = pa.Table.from_batches(batches)
        kept = np.sort(chance.choice(rows.num_rows, min(rows.num_rows, self._rows_of(file)), replace=False))
        taken = rows.take(pa.array(kept)).combine_chunks()
        arrays = {column.name: _values(taken, column, name in stored) for name, column in names.items()}
        pages = pages_of(source, present) if has_pages else {}
        return _Part(file, arrays, len(kept), pages, read)

    def _rows_of(self, file: int) -> int:
        """How many rows of the sample are those of a file."""
        if self.chosen < self.files.count:
            return max(1, self.wanted.rows // self.chosen)
        share = float(self.files.sizes[file]) / max(self.files.bytes, 1)
        return max(1, round(self.wanted.rows * share))


def _bytes_of(parquet: pq.ParquetFile, group: int, names: Sequence[str]) -> int:
    metadata, wanted = parquet.metadata.row_group(group), set(names)
    chunks = (metadata.column(n) for n in range(metadata.num_columns))
    sizes = [int(chunk.total_compressed_size) for chunk in chunks if chunk.path_in_schema in wanted]
    return sum(sizes)


def _values(rows: pa.Table, column: Column, is_stored: bool) -> pa.Array:
    kind = arrow_type(column.log_type)
    if not is_stored:
        return pa.nulls(rows.num_rows, kind)
    array = rows.column(column.stored_path[0])
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    for name in column.stored_path[1:]:
        array = pc.struct_field(array, name)
    return as_read(array, column.log_type)


def _table_sample(
    parts: Sequence[_Part], files: FileBounds, columns: Sequence[Column], partitions: Sequence[Column], wanted: Wanted
) -> TableSample:
    owners = np.repeat([part.file for part in parts], [part.rows for part in parts])
    no_hashes = np.zeros(len(owners), np.int32)
    sampled, arrays = {}, {}
    for column in columns:
        bounds = files.columns.get(column.name)
        if column in partitions:
            if bounds is not None:
                values, nulls = bounds.low[owners], ~bounds.may_have_value[owners]
                sampled[column.name] = SampledColumn(values, nulls, no_hashes)
            continue
        array = pa.chunked_array([part.arrays[column.name] for part in parts]).combine_chunks()
        arrays[column.name] = array
        values, nulls = ordered_values(array)
        ends: tuple[Any, Any] = (None, None)
        if bounds is not None and bool(bounds.is_known.any()):
            ends = bounds.low[bounds.is_known].min(), bounds.high[bounds.is_known].max()
        sampled[column.name] = SampledColumn(values, nulls, no_hashes, *ends)
    known = files.rows >= 0
    # Where the log lacks the rows of files, they have as many bytes per row as the others, or as a plain row has.
    per_byte = files.rows[known].sum() / max(files.sizes[known].sum(), 1) if bool(known.any()) else 0.01
    total = max(int(files.rows[known].sum() + per_byte * files.sizes[~known].sum()), len(owners))
    target = max(1, int(wanted.target_file_bytes * total / max(files.bytes, 1)))
    names = tuple(column.name for column in partitions if column.name in sampled)

    def hash_rows(columns: Sequence[str]) -> NDArray[np.int32]:
        return hash_of([arrays[name] for name in columns], len(owners))

    return TableSample(sampled, names, total, target, hash_rows)


def _pages_by_column(parts: Sequence[_Part], columns: Sequence[Column]) -> dict[str, list[tuple[int, Pages]]]:
    names = {".".join(column.stored_path): column.name for column in columns}
    found: dict[str, list[tuple[int, Pages]]] = {}
    for part in parts:
        for path, pages in part.pages.items():
            found.setdefault(names[path], []).append((part.file, pages))
    return found
