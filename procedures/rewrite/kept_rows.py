"""Keeps the layout of the rows that a statement writes: most of them were in place before.

Source:
    Decision 105.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from catalog.errors import RowsChangedError
from catalog.files.arrays import UNKNOWN
from catalog.files.file_table import FileTable
from catalog.jvm.file_writer import DataFile
from catalog.jvm.kept_rows import KeptFacts, KeptRows
from catalog.jvm.session import MOST_ROWS_KEY, SORTED_COLUMNS_KEY, described_jobs, write_session
from catalog.properties.index_properties import IndexConfiguration
from catalog.table.snapshot import TableSnapshot
from otree.revision import Revision
from otree.tree import Tree
from otree.weight import MAX_WEIGHT, MIN_WEIGHT
from procedures.layout.layout_writer import LayoutWriter
from procedures.layout.row_measures import has_other_hash_types
from procedures.layout.step import Step, StepObserver, ignore_step
from procedures.layout.tags import TAGS_OF_BLOCKS, FileHistory, WrittenFile, carry_thresholds, tags_of
from procedures.layout.target import target_in_revision
from procedures.process.application import Application

NO_INDEX, OTHER_HASH_TYPES = "NO_INDEX", "OTHER_HASH_TYPES"
"""Why the files of rows lose their index."""
NOTHING_TO_KEEP = ""

# Delta names a file after the Spark partition that wrote it.
_PART = re.compile(r"(?:^|/)part-(\d+)-[^/]*$")
# A task writes the rows of one file; an update may move some to another partition, a change feed gets others.
_WRITERS_KEY = "spark.sql.maxConcurrentOutputFileWriters"
_WRITERS = "8"
# Targets above which the rows of a file are written by several tasks.
_LARGEST_PART = 2
_WEIGHTS = MAX_WEIGHT - MIN_WEIGHT + 1


def write_kept_rows(handle: KeptRows, app: Application, observe: StepObserver = ignore_step) -> str | None:
    """Has the rows of a statement written by Delta, with the layout that they had.

    If each row comes from one row of a file, each file is written by a task of its own, in its order. Other rows of
    rewritten files, such as those of MERGE, are placed anew: by a sample of the files as they were, so that the rows
    are computed once. Rows that replace no file, beside deletion vectors, are written as they come.

    Args:
        handle: one call of Delta's ``writeFiles``, in the writer's session.
        app: whose clock it uses.
        observe: sees each step before it begins.

    Returns:
        None; or, if Delta is to write the rows as usual, the code of the reason, empty if the files had no index.

    Raises:
        RowsChangedError: a file does not hold the rows that were counted while it was written.
    """
    facts = handle.facts()
    snapshot = TableSnapshot.of(handle.state(), facts.location)
    configuration, revision = snapshot.index_configuration, snapshot.latest_revision
    if configuration is None or revision is None:
        return NO_INDEX
    sources = _files_of(snapshot, facts.paths)
    if len(sources) and not (sources.revision > 0).any():
        return NOTHING_TO_KEEP
    if not snapshot.has_columns_of(revision):
        return NO_INDEX
    if has_other_hash_types(snapshot, configuration):
        return OTHER_HASH_TYPES
    session = write_session(handle.spark)
    write = _Write(
        handle,
        facts,
        LayoutWriter(session, handle, snapshot, observe, strict=False),
        configuration,
        revision,
        sources,
        app.clock.now(),
    )
    with described_jobs(session, f"USE: statement on {facts.location}"):
        if not facts.replaces_files or not len(sources):
            write.as_they_come()
        elif facts.is_row_by_row:
            write.file_by_file()
        else:
            write.placed()
    return None


def _files_of(snapshot: TableSnapshot, paths: Sequence[str]) -> FileTable:
    files = snapshot.file_table_if_few
    wanted = frozenset(paths)
    return snapshot.only_paths(paths).file_table if files is None else files.where(files.with_paths(wanted))


@dataclass(frozen=True)
class _Write:
    """One write of a statement.

    Attributes:
        handle: the rows.
        facts: what is known of them.
        writer: writes the files, in a session of its own.
        configuration: what is indexed.
        revision: the newest revision, which the rows join. Values outside its space have a place at its edge.
        sources: the files that the rows come from.
        now: epoch milliseconds.
    """

    handle: KeptRows
    facts: KeptFacts
    writer: LayoutWriter
    configuration: IndexConfiguration
    revision: Revision
    sources: FileTable
    now: int

    def file_by_file(self) -> None:
        """Writes the rows of each file to a file of their own, in their order, with the tags of the former file."""
        self._prepare()
        most = _LARGEST_PART * self.configuration.target_file_bytes
        rows = self.handle.apart(self.writer.session, most)
        keeps_blocks = self._keeps_blocks(most)
        files = self.writer.write_unplaced(rows) if keeps_blocks else self.writer.write(rows, self.revision, self._tree)
        sources = self.handle.partition_files()
        former = {file.path: self.sources.position_of(_source_of(file, sources)) for file in files}
        indexed = [file for file in files if self.sources.revision[former[file.path]] > 0]
        of_source = {file.path: self.sources.take(np.array([former[file.path]])) for file in indexed}
        # Without statistics, the rows of a file are not known before they are read back.
        if keeps_blocks and all(file.rows is not None for file in indexed):
            self._copy_blocks(indexed, of_source)
        else:
            self._tag(self._blocks(indexed), of_source)

    def _keeps_blocks(self, most: int) -> bool:
        """Whether each file gets the rows of a former one, with the same values in all columns that were indexed.

        Args:
            most: a larger file becomes several.
        """
        revisions, numbers = self.writer.snapshot.revisions, set(self.sources.revision.tolist()) - {0}
        columns = {column for number in numbers for column in revisions[number].columns}
        is_whole = (self.sources.deletion_vector == "") & (self.sources.size <= most) & (self.sources.rows != UNKNOWN)
        return columns <= self.facts.kept_columns and bool(is_whole.all())

    def placed(self) -> None:
        """Places the rows as the files that they replace lead to expect."""
        self.writer.observe(Step.PLACE)
        session, sources = self.writer.session, self.sources
        size = max(int(sources.size.sum()), 1)
        source_rows = self.handle.source_rows()
        known = (sources.rows != UNKNOWN).all()
        expected = int(sources.rows.sum()) if known else source_rows.count()
        share = self.configuration.target_file_bytes / size
        target = target_in_revision(
            session, self.writer.snapshot, self.revision, self.facts.paths, source_rows, max(expected, 1), share
        )
        target = replace(
            target,
            weight_span=_weight_span(sources),
            sample_fractions=self.configuration.sample_fractions,
        )
        self._prepare()
        has_several = len(set(sources.partition.tolist())) > 1
        written = self.writer.write_laid_out(
            target,
            self.handle.rows_in(session),
            partition_columns=self.writer.snapshot.partition_columns if has_several else (),
        )
        self._tag(written, dict.fromkeys((file.path for file in written), sources))

    def as_they_come(self) -> None:
        """Writes rows beside those of the table, as the statement computes them."""
        self._prepare()
        files = self.writer.write(self.handle.rows_in(self.writer.session), self.revision, self._tree)
        self._tag(self._blocks(files), {})

    def _prepare(self) -> None:
        session = self.writer.session
        session.conf.set(MOST_ROWS_KEY, "0")
        session.conf.set(_WRITERS_KEY, _WRITERS)
        session.conf.set(SORTED_COLUMNS_KEY, json.dumps(self.revision.columns))

    @cached_property
    def _tree(self) -> Tree:
        return Tree.current(self.revision.dimensions, self.writer.snapshot.cube_states(self.revision))

    def _blocks(self, files: Sequence[DataFile]) -> list[WrittenFile]:
        self.writer.observe(Step.VERIFY)
        written = self.writer.blocks(files, self.revision, self._tree)
        replaced = self.facts.paths if self.facts.replaces_files else ()
        remaining = self.writer.snapshot.cube_states(self.revision, replaced)
        return carry_thresholds(written, self._tree, remaining)

    def _copy_blocks(self, files: Sequence[DataFile], former: Mapping[str, FileTable]) -> None:
        """Tags files with the blocks of those that had their rows."""
        self.writer.observe(Step.TAG)
        known, tags, own = self.handle.source_tags(), {}, uuid.uuid4().hex
        for file in files:
            source = former[file.path]
            if file.rows != source.rows[0]:
                raise RowsChangedError(f"{file.path} has {file.rows} rows in place of {source.rows[0]}.")
            blocks = {key: text for key, text in known[source.path[0]].items() if key in TAGS_OF_BLOCKS}
            tags[file.path] = blocks | _history_of(source, own).tags
        self.handle.tag(tags, own)

    def _tag(self, files: Sequence[WrittenFile], sources: Mapping[str, FileTable]) -> None:
        """Tags files; where their rows come from files, with the times and rewrites of these."""
        self.writer.observe(Step.TAG)
        tags, own = {}, uuid.uuid4().hex
        for file in files:
            former = sources.get(file.path)
            history = FileHistory(own, self.now, self.now) if former is None else _history_of(former, own)
            tags[file.path] = tags_of(file, self.revision.revision_id, history)
        self.handle.tag(tags, own)


def _source_of(file: DataFile, sources: Sequence[str]) -> str:
    """The file that the rows of a written file come from."""
    part = _PART.search(file.path)
    assert part is not None, file.path
    return sources[int(part[1])]


def _history_of(former: FileTable, own: str) -> FileHistory:
    """The history of rows that come from some files.

    Args:
        former: the files.
        own: id of this write, for rows of several files.
    """
    write_id = former.write_ids[former.write[0]] if len(former) == 1 else own
    rewrites = float((former.rewrites * former.size).sum() / max(former.size.sum(), 1))
    return FileHistory(write_id or own, int(former.first_time.min()), int(former.last_time.max()), rewrites)


def _weight_span(files: FileTable) -> float:
    """Length of the range of weights of indexed files, as a share of all weights; 1 where it is not known."""
    if (files.band_first == UNKNOWN).any() or (files.band_end == UNKNOWN).any():
        return 1.0
    return min(1.0, max(1, int(files.band_end.max() - files.band_first.min())) / _WEIGHTS)
