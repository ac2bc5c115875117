"""Diagnosis of one table: what reads cost today, what an index would change, and what to do."""

from __future__ import annotations

import time

import pyarrow as pa

from catalog.errors import NotSupportedError
from catalog.properties.target_file_size import TARGET_FILE_BYTES
from catalog.sql_names import name_parts
from otree.data_types import format_data_type
from otree.transformation import kinds_for
from procedures.insight.recommendation.candidates import named, transformation_of, unusable_note
from procedures.insight.recommendation.simulated_layout import TableSample
from procedures.insight.recommendation.workload import Workload
from sql_ext.diagnosis.assumed_queries import assumed_workload, parsed_queries, with_values
from sql_ext.diagnosis.file_bounds import FileBounds
from sql_ext.diagnosis.log_facts import deleted_rows, log_facts
from sql_ext.diagnosis.ordered_values import has_order
from sql_ext.diagnosis.prediction import Prediction, PresentLayout, predict
from sql_ext.diagnosis.present_index import present_index
from sql_ext.diagnosis.results import ColumnDiagnosis, Request, TableDiagnosis
from sql_ext.diagnosis.row_sample import RowSample, Wanted, take_row_sample
from sql_ext.diagnosis.verdict import VerdictFacts, verdict_of
from sql_ext.readers.delta_files import DeltaFiles
from sql_ext.readers.table_columns import Column, arrow_type

# Delta collects statistics of so many columns by default. More would make the sample and the page longer.
_MOST_COLUMNS = 32
_SMALL_SHARE = 4


def diagnose_table(location: str, request: Request) -> TableDiagnosis:
    """Diagnoses a table.

    Args:
        location: path or URL.
        request: what is asked for.

    Returns:
        The diagnosis; nothing was written.

    Raises:
        TableError: there is no Delta table.
        UseError: its log or its files cannot be read, or a query cannot be used.
    """
    return _Diagnosing(location, request).result()


class _Diagnosing:
    """The steps of one diagnosis."""

    def __init__(self, location: str, request: Request) -> None:
        self._begun, self._request, self._options = time.monotonic(), request, request.storage_options or {}
        self._table = DeltaFiles.of(location, None, self._options)
        names = self._table.columns
        ordered = [column for column in names.leaves if has_order(_arrow_type(column))]
        self._partitions = [column for column in ordered if column.path[0] in names.partitioned_by]
        self._files = FileBounds.of(self._table, ordered)
        self._parsed = [] if request.queries is None else parsed_queries(request.queries, names)
        used = {name for query in self._parsed for name in Workload((query,)).columns}
        rest = [column for column in ordered if column not in self._partitions]
        # Those without statistics come last: a range of them reads every file.
        rest.sort(key=lambda column: (column.name not in used, column.name not in self._files.columns))
        self._columns, self._left_out = rest[:_MOST_COLUMNS], max(0, len(rest) - _MOST_COLUMNS)
        self._index = present_index(self._table, self._files, self._options)

    @property
    def _target(self) -> int:
        if self._request.target_file_bytes is not None:
            return self._request.target_file_bytes
        return int(str(TARGET_FILE_BYTES.value(self._table.configuration)))

    def result(self) -> TableDiagnosis:
        """Takes the sample and judges the table by it."""
        effort = self._request.effort
        if self._files.count == 0 or (effort.is_brief and self._files.bytes <= self._target):
            layout = PresentLayout(self._files, {}, self._index.sample_share)
            return self._result(layout, Prediction((), 1.0, 1.0, None, effort.places), None)
        wanted = Wanted(effort.rows, effort.groups, self._request.budget_bytes, self._target)
        sample = take_row_sample(self._table, self._files, self._columns, self._partitions, wanted)
        layout = PresentLayout(self._files, sample.pages, self._index.sample_share)
        indexable = [column for column in self._columns if _kinds(column)]
        if self._parsed:
            workload = Workload(tuple(with_values(query, self._table.columns) for query in self._parsed))
        else:
            workload = assumed_workload(sample.table, indexable, effort.places, effort.columns)
        prediction = predict(
            layout, sample.table, workload, [column.name for column in indexable], self._request.effort.places
        )
        return self._result(layout, prediction, sample, workload)

    def _result(
        self, layout: PresentLayout, prediction: Prediction, sample: RowSample | None, workload: Workload | None = None
    ) -> TableDiagnosis:
        files, rows = self._files, self._files.row_count
        deleted, with_deleted = deleted_rows(self._table, files.paths)
        small = int((files.sizes < self._target // _SMALL_SHARE).sum())
        columns: tuple[ColumnDiagnosis, ...] = ()
        notes: tuple[str, ...] = ()
        text, box = None, None
        if sample is not None:
            all_columns = [*self._partitions, *self._columns]
            columns = tuple(self._column(column, layout, prediction, sample.table) for column in all_columns)
            text = self._index_text(prediction, sample.table, workload)
            box = prediction.box_shares(layout, sample.table)
            notes = self._notes(sample, workload)
        facts = VerdictFacts(
            location=self._table.location,
            bytes=files.bytes,
            files=files.count,
            small_files=small,
            target_file_bytes=self._target,
            has_default_target=self._request.target_file_bytes is None,
            rows=rows,
            deleted_rows=deleted,
            present_columns=self._index.columns,
            unindexed_bytes=self._index.unindexed_bytes,
            columns=prediction.columns,
            columns_text=text or "",
            today=prediction.workload_today,
            indexed=prediction.workload_indexed,
            are_assumed=not self._parsed,
        )
        return TableDiagnosis(
            location=self._table.location,
            version=self._table.version,
            rows=None if rows is None else rows - deleted,
            files=files.count,
            bytes=files.bytes,
            small_files=small,
            target_file_bytes=self._target,
            deleted_rows=deleted,
            files_with_deleted_rows=with_deleted,
            log=log_facts(self._table),
            partitioned_by=self._table.columns.partitioned_by,
            index_columns=self._index.columns,
            unindexed_bytes=self._index.unindexed_bytes,
            columns=columns,
            left_out_columns=self._left_out,
            recommended=text,
            box=box,
            sample=prediction.sample_shares(layout),
            workload_today=prediction.workload_today,
            workload_indexed=prediction.workload_indexed,
            queries=len(self._parsed),
            notes=notes,
            verdict=verdict_of(facts),
            read_bytes=0 if sample is None else sample.read_bytes,
            seconds=time.monotonic() - self._begun,
        )

    def _column(
        self, column: Column, layout: PresentLayout, prediction: Prediction, sample: TableSample
    ) -> ColumnDiagnosis:
        is_partition = column in self._partitions
        if column.name not in sample.columns:
            return ColumnDiagnosis(column.name, column.sql_type, None, is_partition, None)
        distinct = len(sample.columns[column.name].distinct)
        reads = prediction.range_shares(layout, sample, column.name)
        return ColumnDiagnosis(column.name, column.sql_type, distinct, is_partition, reads)

    def _index_text(self, prediction: Prediction, sample: TableSample, workload: Workload | None) -> str | None:
        if not prediction.columns or workload is None:
            return None
        kinds = {}
        for name in prediction.columns:
            column = self._table.columns.find(name_parts(name))
            accepted = _kinds(column)
            kind = transformation_of(
                sample.columns[name], workload.operators(name), accepted, is_text=column.sql_type == "string"
            )
            kinds[name] = kind, kind == accepted[0]
        return named(prediction.columns, kinds)

    def _notes(self, sample: RowSample, workload: Workload | None) -> tuple[str, ...]:
        notes = [f"{count} could not be read: {sample.problems[0]}"] if (count := len(sample.problems)) else []
        unusable = "" if workload is None else unusable_note(workload).strip()
        return (*notes, unusable) if unusable else tuple(notes)


def _arrow_type(column: Column) -> pa.DataType:
    try:
        return arrow_type(column.log_type)
    except NotSupportedError:
        return pa.null()


def _kinds(column: Column) -> tuple[str, ...]:
    """The transformations that the column may be indexed by; none under a collation or without a hash."""
    data_type = format_data_type(column.sql_type)
    return () if data_type is None or column.collation is not None else kinds_for(data_type, column.sql_type)
