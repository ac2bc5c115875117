"""Indexes rows while Delta writes them: lays them out, has them written, tags the files.

Source:
    Decisions 010 to 012.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from catalog.errors import IndexConfigurationError, RowsChangedError
from catalog.jvm.session import data_frame, described_jobs, jvm, jvm_session, write_session
from catalog.properties.index_properties import AS_INDEXED_KEY, HASH_TYPES_KEY_PREFIX, IndexConfiguration
from catalog.table.column_names import find_stored
from catalog.table.snapshot import TableSnapshot
from otree.cube import CubeId
from otree.revision import LAST_REVISION_KEY, REVISION_KEY_PREFIX, Revision
from otree.tree import CubeState, Tree
from otree.weight import MAX_WEIGHT
from procedures.layout.current_trees import CURRENT_TREES
from procedures.layout.file_ranges import ranges_of_files
from procedures.layout.index_columns import Observation, observation_of
from procedures.layout.row_layout import arranged, grown_tree, lay_out
from procedures.layout.tags import WrittenFile, carry_thresholds, noted_blocks, read_blocks, tags_of
from procedures.layout.target import (
    Target,
    columns_of,
    hashed_otherwise,
    revision_for,
    stored_columns_of,
    target_for_new_rows,
)

logger = logging.getLogger(__name__)

# Rows that Spark takes for this share of a file or less are written as they come, into one file.
_FEW_SHARE = 0.25
# Bytes of a value whose type does not tell.
_DEFAULT_ROW_BYTES = 100


def _nothing(_: str) -> None:
    """Observes nothing."""


observe: Callable[[str], None] = _nothing
"""Called with the name of each step before it begins: ``place``, ``write``, ``verify``, ``tag``."""


@dataclass(frozen=True)
class _Write:
    """One write of Delta's, as the shim offers it.

    Attributes:
        session: the writer's session.
        handle: the shim's ``IndexedRows``.
        snapshot: the table, with the properties and schema that the commit will give it.
        found: what is to be indexed.
        location: the table's root.
        plan_bytes: Spark's estimate of the rows' size.
        repeatable: whether the rows can be read several times, at the cost of reading.
        mode: ``append``; ``replace`` when all rows of the table are replaced; ``partial`` when some are.
        change_type: name of the column that marks rows of a change feed, which are not rows of the table.
    """

    session: SparkSession
    handle: Any
    snapshot: TableSnapshot
    found: IndexConfiguration
    location: str
    plan_bytes: int
    repeatable: bool
    mode: str
    change_type: str | None


def write_indexed(session: SparkSession, handle: Any, rows: DataFrame) -> None:
    """Has the rows written by Delta, indexed.

    Args:
        session: the writer's session.
        handle: the shim's ``IndexedRows``: one call of Delta's ``writeFiles``.
        rows: the rows as they came to Delta, before it adds generated columns and the like.

    Raises:
        IndexConfigurationError: nothing says which columns to index.
        RowsChangedError: what was written cannot be read back as it was counted.
    """
    facts = json.loads(handle.facts())
    snapshot, dropped = _joined(TableSnapshot.of(session, handle.state()), facts)
    found = snapshot.index_configuration
    if found is None:
        raise IndexConfigurationError.no_columns(facts["location"], "an indexed write")
    write = _Write(
        session,
        handle,
        snapshot,
        found,
        facts["location"],
        facts["plan_bytes"],
        facts["repeatable"],
        facts["mode"],
        facts["change_type"],
    )
    _configure(write, facts["settings"], dropped)
    with described_jobs(session, f"USE: indexed write to {write.location}"):
        if _few(write):
            _write_as_they_come(write, rows)
        else:
            _write_measured(replace(write, session=write_session(session)))


def _joined(snapshot: TableSnapshot, facts: Mapping[str, Any]) -> tuple[TableSnapshot, list[str]]:
    """The table as the rows will find it, and the properties of the index that a full overwrite takes away."""
    configuration = snapshot.configuration | facts["settings"]
    dropped: list[str] = []
    if facts["mode"] == "replace":
        of_revisions = (REVISION_KEY_PREFIX, HASH_TYPES_KEY_PREFIX)
        dropped = [k for k in configuration if k in (LAST_REVISION_KEY, AS_INDEXED_KEY) or k.startswith(of_revisions)]
        configuration = {k: v for k, v in configuration.items() if k not in dropped}
        # Nothing of the files that go matters to those that come, their revisions least of all.
        snapshot = snapshot.only(lambda files: files.where(F.lit(False)))
    return replace(snapshot, configuration=configuration), dropped


def _few(write: _Write) -> bool:
    """Whether the rows may be written as they come: few, into a revision that is there."""
    latest = write.snapshot.latest_revision
    return (
        latest is not None
        and write.mode == "append"
        and latest.transformers == write.found.transformers
        and write.found.cube_size in (None, latest.desired_cube_size)
        and not hashed_otherwise(write.snapshot, write.found)
        and write.plan_bytes <= _FEW_SHARE * write.found.target_file_bytes
    )


def _write_as_they_come(write: _Write, rows: DataFrame) -> None:
    """Writes one file first; one pass over it then gives blocks and ranges together."""
    revision = write.snapshot.latest_revision
    assert revision is not None
    tree = _current_tree(write, revision.revision_id)
    files = _written(write, rows.coalesce(1), revision, tree)
    if not files:
        return
    observe("verify")
    found = _blocks(write, files, revision, tree)
    told = ranges_of_files([f["stats"] for f in files], write.found.transformers)
    if told is None or revision_for(write.snapshot, write.found, told, 1, write.location)[1]:
        read = data_frame(write.handle.readWritten(), write.session)
        seen = _observed(write, read)
        revision, new = revision_for(
            write.snapshot, write.found, seen.stats, seen.weights.rows, write.location, seen.weights
        )
        if new:
            _configure(write, new, [])
            columns = columns_of(write.session, write.snapshot, revision)
            tree = grown_tree(read, seen.weights.rows, columns, {})
            found = read_blocks(files, read, tree, columns)
    _tag(write, revision.revision_id, files, found, tree)


def _write_measured(write: _Write) -> None:
    """Measures the rows, lays them out in files of the target size, and has them written so."""
    given = data_frame(write.handle.rowsIn(jvm_session(write.session)), write.session)
    level = given.storageLevel
    keep = not write.repeatable and not level.useMemory and not level.useDisk
    kept = given.persist() if keep else given
    try:
        placed = _with_index_columns(write, kept)
        table_rows = placed if write.change_type is None else placed.where(F.col(write.change_type).isNull())
        observe("place")
        seen = _observed(write, table_rows)
        if seen.weights.rows == 0:
            _written(write, kept, None, None)
            return
        target = target_for_new_rows(
            write.session,
            write.snapshot,
            write.found,
            seen,
            table_rows,
            lambda count: count * _row_bytes(write, count),
            write.location,
        )
        if target.warning:
            logger.warning("%s: %s", write.location, target.warning)
        _configure(write, target.new_properties, [])
        layout = lay_out(table_rows, target.rows, target.tree, target.columns, target.file_share, target.beside)
        write.session.conf.set("spark.sql.files.maxRecordsPerFile", str(layout.largest_file))
        laid_out = arranged(placed, layout, target.columns).select(*_names(kept))
        files = _written(write, laid_out, target.columns.revision, target.tree)
        observe("verify")
        found = _blocks(write, files, target.columns.revision, target.tree)
        found = carry_thresholds(found, target.tree, _told(write, target))
        _tag(write, target.columns.revision.revision_id, files, found, target.tree)
    finally:
        if keep:
            kept.unpersist()


def _observed(write: _Write, rows: DataFrame) -> Observation:
    found = write.found
    return observation_of(
        rows, found.transformers, found.logical_columns, found.declared, write.snapshot.latest_revision
    )


def _told(write: _Write, target: Target) -> Mapping[CubeId, CubeState]:
    """The cubes as the files that stay tell of them."""
    if write.mode != "partial":
        return target.remaining
    # Which files stay is Delta's to decide after this: so every threshold is told anew.
    return {cube: CubeState(MAX_WEIGHT, 0) for cube in target.tree.thresholds}


def _names(rows: DataFrame) -> list[Any]:
    return [F.col("`" + name.replace("`", "``") + "`") for name in rows.columns]


def _with_index_columns(write: _Write, rows: DataFrame) -> DataFrame:
    """Adds the indexed columns that Delta will fill in: generated ones, defaults, and nulls."""
    present = {name.lower() for name in rows.columns}
    for transformer in write.found.transformers:
        found = find_stored(write.snapshot.schema, transformer.column)
        if found is None or found.path[0].lower() in present:
            continue
        name = found.path[0]
        present.add(name.lower())
        field = write.snapshot.schema[name]
        metadata = field.metadata or {}
        text = metadata.get("delta.generationExpression") or metadata.get("CURRENT_DEFAULT") or "NULL"
        rows = rows.withColumn(name, F.expr(text).cast(field.dataType))
    return rows


def _row_bytes(write: _Write, count: int) -> float:
    """Bytes of a row in a file: as the table's files have it, else as Spark estimates it, else by type."""
    if write.snapshot.version >= 0:
        known = write.snapshot.files.where("rows > 0").agg(F.sum("size").alias("size"), F.sum("rows").alias("rows"))
        found = known.collect()[0]
        if found["rows"]:
            return float(found["size"]) / float(found["rows"])
    by_type = float(sum(_value_bytes(field.dataType.simpleString()) for field in write.snapshot.schema.fields))
    return max(1.0, min(write.plan_bytes / max(count, 1), by_type))


def _value_bytes(type_name: str) -> int:
    sizes = {"boolean": 1, "tinyint": 1, "smallint": 2, "int": 4, "float": 4, "date": 4, "string": 20}
    if type_name in sizes:
        return sizes[type_name]
    simple = type_name in ("bigint", "double", "timestamp", "timestamp_ntz") or type_name.startswith("decimal")
    return 8 if simple else _DEFAULT_ROW_BYTES


def _current_tree(write: _Write, revision_id: int) -> Tree:
    snapshot = write.snapshot
    key = (_identity(write), snapshot.version, revision_id)
    tree = CURRENT_TREES.get(key)
    if tree is None:
        revision = snapshot.revisions[revision_id]
        tree = Tree.current(revision.dimensions, snapshot.cube_states(revision))
        CURRENT_TREES.put(key, tree)
    return tree


def _identity(write: _Write) -> str:
    """A copied table keeps its id, and goes its own way from there."""
    return f"{write.snapshot.table_id} at {write.location}"


def _written(write: _Write, rows: DataFrame, revision: Revision | None, tree: Tree | None) -> list[Mapping[str, Any]]:
    """What was written, and of each file the blocks of a tree where one is given."""
    observe("write")
    cube = weight = None
    if revision is not None and tree is not None:
        stored = stored_columns_of(write.session, write.snapshot, revision)
        cube, weight = stored.cube(tree.ordinals())._jc, stored.weight._jc
    files: list[Mapping[str, Any]] = json.loads(write.handle.write(rows._jdf, cube, weight))
    return files


def _blocks(write: _Write, files: Sequence[Mapping[str, Any]], revision: Revision, tree: Tree) -> Sequence[WrittenFile]:
    found = noted_blocks(files, tree)
    if found is not None:
        return found
    columns = columns_of(write.session, write.snapshot, revision)
    return read_blocks(files, data_frame(write.handle.readWritten(), write.session), tree, columns)


def _tag(
    write: _Write,
    revision_id: int,
    files: Sequence[Mapping[str, Any]],
    found: Sequence[WrittenFile],
    tree: Tree,
) -> None:
    expected = {str(f["path"]): int(f["rows"]) for f in files}
    for file in found:
        if expected[file.path] not in (file.rows, -1):
            raise RowsChangedError(
                f"{expected[file.path]} rows were written to {file.path} and {file.rows} found in it."
            )
    observe("tag")
    now, write_id = time.time_ns() // 1_000_000, uuid.uuid4().hex
    java = jvm(write.session).java.util
    tags = java.HashMap()
    for file in found:
        one = java.HashMap()
        for key, value in tags_of(file, revision_id, write_id, now, now).items():
            one.put(key, value)
        tags.put(file.path, one)
    write.handle.tag(tags, write_id)
    if write.mode == "append":
        CURRENT_TREES.expect(write_id, (_identity(write), write.snapshot.version, revision_id), tree)


def _configure(write: _Write, entries: Mapping[str, str], dropped: Sequence[str]) -> None:
    java = jvm(write.session).java.util
    added, removed = java.HashMap(), java.ArrayList()
    for key, value in entries.items():
        added.put(key, value)
    for key in dropped:
        removed.add(key)
    if entries or dropped:
        write.handle.configure(added, removed)
