"""Indexes rows while Delta writes them: lays them out, has them written, tags the files.

Source:
    Decisions 010 to 012.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from catalog.columns.column_names import find_column, find_stored, quoted_name
from catalog.errors import AmbiguousColumnError, IndexConfigurationError
from catalog.jvm.file_writer import DataFile
from catalog.jvm.indexed_rows import IndexedRows, WriteFacts
from catalog.jvm.session import described_jobs, write_session
from catalog.properties.index_properties import AS_INDEXED_KEY, HASH_TYPES_KEY_PREFIX, IndexConfiguration
from catalog.table.snapshot import TableSnapshot
from otree.cube import CubeId
from otree.overfull import is_overfull
from otree.revision import LAST_REVISION_KEY, REVISION_KEY_PREFIX, Revision
from otree.tree import CubeState, Tree
from procedures.layout.file_ranges import ranges_of_files
from procedures.layout.index_columns import columns_of
from procedures.layout.layout_writer import LayoutWriter
from procedures.layout.row_layout import grown_tree
from procedures.layout.row_measures import RowMeasures, has_other_hash_types, measure_columns, sample_of
from procedures.layout.step import Step, StepObserver, ignore_step
from procedures.layout.tags import FileHistory, WrittenFile, carry_thresholds, tags_by_path
from procedures.layout.target import Target, revision_for, target_for_new_rows
from procedures.process.application import Application
from procedures.process.current_trees import CurrentTree

logger = logging.getLogger(__name__)

# Rows that Spark takes for this share of a file or less are written as they come, into one file.
_FEW_SHARE = 0.25
# Bytes of a value whose type does not tell.
_DEFAULT_ROW_BYTES = 100


@dataclass(frozen=True)
class _Write:
    """One write of Delta's, as the shim offers it.

    Attributes:
        session: the writer's session.
        handle: the shim's ``IndexedRows``.
        snapshot: the table, with the properties and schema that the commit will give it.
        configuration: what is to be indexed.
        location: the table's root.
        plan_bytes: Spark's estimate of the rows' size.
        repeatable: whether the rows can be read several times, at the cost of reading.
        mode: ``append``; ``replace`` when all rows of the table are replaced; ``partial`` when some are.
        change_type: name of the column that marks rows of a change feed, which are not rows of the table.
        replaced_revision: the greatest number of a revision that the write takes away. An append that began earlier can
            still commit files with this number, so that no new revision may have it.
        app: whose trees and clock it uses.
        observe: sees each step before it begins.
    """

    session: SparkSession
    handle: IndexedRows
    snapshot: TableSnapshot
    configuration: IndexConfiguration
    location: str
    plan_bytes: int
    repeatable: bool
    mode: str
    change_type: str | None
    replaced_revision: int
    app: Application
    observe: StepObserver

    @property
    def writer(self) -> LayoutWriter:
        """Writes the files."""
        return LayoutWriter(self.session, self.handle, self.snapshot, self.observe, strict=False)


def write_indexed(handle: IndexedRows, app: Application, observe: StepObserver = ignore_step) -> str | None:
    """Has the rows written by Delta, indexed.

    Args:
        handle: one call of Delta's ``writeFiles``, in the writer's session.
        app: whose trees and clock it uses.
        observe: sees each step before it begins.

    Returns:
        None; or, if Delta is to write the rows as usual, the code of the reason.

    Raises:
        IndexConfigurationError: nothing says which columns to index.
        RowsChangedError: what was written cannot be read back as it was counted.
    """
    session, facts = handle.spark, handle.facts()
    before = TableSnapshot.of(handle.state())
    snapshot, dropped = _snapshot_after_write(before, facts)
    try:
        configuration = snapshot.index_configuration
    except AmbiguousColumnError as error:
        if before.latest_revision is None:
            raise
        # A column was added since, and the statement does not ask for other index columns.
        logger.warning("%s: new rows are not indexed: %s", facts.location, error)
        return error.code
    if configuration is None:
        raise IndexConfigurationError.no_columns(facts.location, "an indexed write")
    write = _Write(
        session,
        handle,
        snapshot,
        configuration,
        facts.location,
        facts.plan_bytes,
        facts.repeatable,
        facts.mode,
        facts.change_type,
        max(before.stored_revisions.numbers, default=0) if facts.mode == "replace" else 0,
        app,
        observe,
    )
    handle.configure(facts.settings, dropped)
    with described_jobs(session, f"USE: indexed write to {write.location}"):
        if _is_small_append(write):
            _write_as_they_come(write, _with_index_fields(write, handle.rows()))
        else:
            _write_measured(replace(write, session=write_session(session)))
    return None


def _snapshot_after_write(snapshot: TableSnapshot, facts: WriteFacts) -> tuple[TableSnapshot, list[str]]:
    """The table as the rows will find it, and the properties of the index that a full overwrite takes away."""
    configuration = {**snapshot.configuration, **facts.settings}
    dropped: list[str] = []
    if facts.mode == "replace":
        of_revisions = (REVISION_KEY_PREFIX, HASH_TYPES_KEY_PREFIX)
        dropped = [k for k in configuration if k in (LAST_REVISION_KEY, AS_INDEXED_KEY) or k.startswith(of_revisions)]
        configuration = {k: v for k, v in configuration.items() if k not in dropped}
        # Nothing of the files that go matters to those that come, their revisions least of all.
        snapshot = snapshot.only_paths(())
    return replace(snapshot, configuration=configuration), dropped


def _is_small_append(write: _Write) -> bool:
    """Whether the rows may be written as they come: few, into a revision that is there."""
    latest = write.snapshot.latest_revision
    return (
        latest is not None
        and write.mode == "append"
        and latest.transformers == write.configuration.transformers
        and write.configuration.cube_size in (None, latest.desired_cube_size)
        and not has_other_hash_types(write.snapshot, write.configuration)
        and write.plan_bytes <= _FEW_SHARE * write.configuration.target_file_bytes
    )


def _write_as_they_come(write: _Write, rows: DataFrame) -> None:
    """Writes one file before anything is measured; one pass over the file then gives blocks and ranges together."""
    revision = write.snapshot.latest_revision
    assert revision is not None
    before = _current_tree(write, revision.revision_id).grown(revision.desired_cube_size)
    tree = before.tree
    files = write.writer.write(rows.coalesce(1), revision, tree)
    if not files:
        return
    write.observe(Step.VERIFY)
    written = write.writer.blocks(files, revision, tree)
    if not written:
        return
    ranges = ranges_of_files([f.stats for f in files], write.configuration.transformers)
    if ranges is None or revision_for(write.snapshot, write.configuration, ranges, 1, write.location)[1]:
        read = write.handle.read_written()
        measures = _measures_of(write, read)
        revision, new = _revision_of(write, measures, measures.weights.rows)
        if new:
            write.handle.configure(new)
            before = CurrentTree.of(revision.dimensions, {})
            tree, written = _placed_again(write, files, read, revision, before)
    if any(is_overfull(block.element_count, revision.desired_cube_size) for file in written for block in file.blocks):
        # The batch itself is larger than a cube: its rows say how their cubes are split.
        tree, written = _placed_again(write, files, write.handle.read_written(), revision, before)
    _tag(write, revision.revision_id, carry_thresholds(written, tree, before.states), tree, before)


def _placed_again(
    write: _Write, files: Sequence[DataFile], read: DataFrame, revision: Revision, before: CurrentTree
) -> tuple[Tree, list[WrittenFile]]:
    """Places rows that are written already, in a tree that is grown by them; their files stay as they are."""
    count = sum(file.rows or 0 for file in files) or read.count()
    sample, _ = sample_of(read, count, columns_of(write.session, write.snapshot, revision), 1.0)
    tree = grown_tree(sample, before.tree, before.states)
    return tree, write.writer.read_back(files, read, revision, tree)


def _write_measured(write: _Write) -> None:
    """Measures the rows, and writes them in files of the target size."""
    cached = None if write.repeatable else write.handle.cached_rows_in(write.session)
    try:
        rows = _with_index_fields(write, write.handle.rows_in(write.session) if cached is None else cached)
        placed = _with_index_columns(write, rows)
        table_rows = placed if write.change_type is None else placed.where(F.col(write.change_type).isNull())
        write.observe(Step.PLACE)
        measures = _measures_of(write, table_rows)
        if measures.weights.rows == 0:
            write.writer.write_unplaced(rows)
            return
        count = measures.weights.rows
        size = max(count * _row_bytes(write, count), 1.0)
        rows_of_file = int(write.configuration.target_file_bytes * count / size)
        revision, new = _revision_of(write, measures, rows_of_file)
        target = target_for_new_rows(
            write.session, write.snapshot, write.configuration, revision, new, measures, table_rows, size
        )
        if target.warning:
            logger.warning("%s: %s", write.location, target.warning)
        remaining = _remaining(write, target)
        written = write.writer.write_laid_out(target, placed, _columns(rows), remaining)
        before = CurrentTree.of(revision.dimensions, target.remaining)
        _tag(write, revision.revision_id, written, target.tree, before)
    finally:
        if cached is not None:
            cached.unpersist()


def _revision_of(write: _Write, measures: RowMeasures, rows_of_file: int) -> tuple[Revision, dict[str, str]]:
    """The revision that the rows join; see ``revision_for``."""
    return revision_for(
        write.snapshot,
        write.configuration,
        measures.stats,
        rows_of_file,
        write.location,
        measures.weights,
        write.app.clock,
        above=write.replaced_revision,
    )


def _measures_of(write: _Write, rows: DataFrame) -> RowMeasures:
    configuration = write.configuration
    return measure_columns(
        rows,
        configuration.transformers,
        configuration.logical_columns,
        configuration.declared,
        write.snapshot.latest_revision,
    )


def _remaining(write: _Write, target: Target) -> Mapping[CubeId, CubeState]:
    """The cubes as the files that stay describe them."""
    if write.mode != "partial" or not target.remaining:
        return target.remaining
    # Delta decides later which files stay. Only where all blocks of a cube agree, those that stay are sure to agree.
    return write.snapshot.cube_states(target.columns.revision, largest=True)


def _columns(rows: DataFrame) -> list[Column]:
    return [F.col(quoted_name(name)) for name in rows.columns]


def _with_index_columns(write: _Write, rows: DataFrame) -> DataFrame:
    """Adds the indexed columns that Delta will fill in: generated ones, defaults, and nulls."""
    present = {name.lower() for name in rows.columns}
    for transformer in write.configuration.transformers:
        column = find_stored(write.snapshot.schema, transformer.column)
        if column is None or column.path[0].lower() in present:
            continue
        name = column.path[0]
        present.add(name.lower())
        field = write.snapshot.schema[name]
        metadata = field.metadata or {}
        text = metadata.get("delta.generationExpression") or metadata.get("CURRENT_DEFAULT") or "NULL"
        rows = rows.withColumn(name, F.expr(text).cast(field.dataType))
    return rows


def _with_index_fields(write: _Write, rows: DataFrame) -> DataFrame:
    """Adds the indexed fields that structs of the rows leave out, as nulls: expressions name all of them."""
    schema = write.snapshot.schema
    for transformer in write.configuration.transformers:
        column = find_stored(schema, transformer.column)
        path = () if column is None else column.path
        for depth in range(1, len(path)):
            outer = find_column(rows.schema, _quoted(path[:depth]))
            field = find_column(schema, _quoted(path[: depth + 1]))
            if outer is None or field is None:
                break
            if find_column(rows.schema, _quoted(path[: depth + 1])) is None:
                top, *below = (*outer.path, path[depth])
                struct = F.col(quoted_name(top))
                null = F.lit(None).cast(field.data_type)
                rows = rows.withColumn(top, struct.withField(_quoted(below), null))
                break
    return rows


def _quoted(path: Sequence[str]) -> str:
    return ".".join(map(quoted_name, path))


def _row_bytes(write: _Write, count: int) -> float:
    """Bytes of a row in a file: as the table's files have it, else as Spark estimates it, else by type."""
    if write.snapshot.version >= 0:
        size, rows = _known_rows(write.snapshot)
        if rows:
            return size / rows
    by_type = float(sum(_value_bytes(field.dataType.simpleString()) for field in write.snapshot.schema.fields))
    return max(1.0, min(write.plan_bytes / max(count, 1), by_type))


def _known_rows(snapshot: TableSnapshot) -> tuple[float, float]:
    """Bytes and rows of the files whose number of rows is known and not 0."""
    columns = snapshot.file_table_if_few
    if columns is not None:
        known = columns.rows > 0
        return float(columns.size[known].sum()), float(columns.rows[known].sum())
    totals = snapshot.files.where("rows > 0").agg(F.sum("size").alias("size"), F.sum("rows").alias("rows")).collect()[0]
    return float(totals["size"] or 0), float(totals["rows"] or 0)


def _value_bytes(type_name: str) -> int:
    sizes = {"boolean": 1, "tinyint": 1, "smallint": 2, "int": 4, "float": 4, "date": 4, "string": 20}
    if type_name in sizes:
        return sizes[type_name]
    simple = type_name in ("bigint", "double", "timestamp", "timestamp_ntz") or type_name.startswith("decimal")
    return 8 if simple else _DEFAULT_ROW_BYTES


def _current_tree(write: _Write, revision_id: int) -> CurrentTree:
    snapshot = write.snapshot
    key = (_identity(write), snapshot.version, revision_id)
    tree = write.app.trees.get(key)
    if tree is None:
        revision = snapshot.revisions[revision_id]
        tree = CurrentTree.of(revision.dimensions, snapshot.cube_states(revision))
        write.app.trees.put(key, tree)
    return tree


def _identity(write: _Write) -> str:
    """A copied table keeps its id, and goes its own way from there."""
    return f"{write.snapshot.table_id} at {write.location}"


def _tag(write: _Write, revision_id: int, written: Sequence[WrittenFile], tree: Tree, before: CurrentTree) -> None:
    write.observe(Step.TAG)
    now, write_id = write.app.clock.now(), uuid.uuid4().hex
    write.handle.tag(tags_by_path(written, revision_id, FileHistory(write_id, now, now)), write_id)
    if write.mode == "append":
        key = (_identity(write), write.snapshot.version, revision_id)
        blocks = [block for file in written for block in file.blocks]
        write.app.trees.expect(write_id, key, before.after(blocks, tree))
