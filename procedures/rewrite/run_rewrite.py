"""Rewrites runs of files without a shuffle: each run becomes one file or several, with its rows in their order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from catalog.columns.column_names import quoted_name
from catalog.history.events import FileFacts
from catalog.jvm.file_writer import DataFile
from catalog.jvm.session import MOST_ROWS_KEY
from otree.block import REWRITES_TAG, TIER_TAG, TIME_RANGE_TAG, WRITE_TAG
from otree.tree import Tree
from procedures.groups.group import Concatenate, FileRun
from procedures.layout.layout_writer import LayoutWriter
from procedures.layout.step import Step
from procedures.layout.tags import FileHistory, carry_thresholds, facts_of, tags_of
from procedures.rewrite.inputs import InputFacts, Inputs
from procedures.rewrite.results import RewriteContext, RewriteOutput
from procedures.rewrite.row_removal import check_keys, removed_only, without_removed

# Delta names a file after the Spark partition that wrote it.
_PART = re.compile(r"(?:^|/)part-(\d+)-[^/]*$")
# A run is of one table partition: its task needs one writer, and rows need not be sorted by partition.
_WRITERS_KEY = "spark.sql.maxConcurrentOutputFileWriters"
_UNINDEXED = -1


@dataclass(frozen=True)
class RunRewrite:
    """The rewrite of the runs of a group.

    Attributes:
        session: session of the work.
        inputs: the transaction.
        group: the runs.
        facts: what the log tells of their files.
        write_id: id of the write.
        context: trigger, parameters and observer of the rewrite.
    """

    session: SparkSession
    inputs: Inputs
    group: Concatenate
    facts: InputFacts
    write_id: str
    context: RewriteContext

    def write(self) -> RewriteOutput:
        """Writes the runs of the group.

        Indexed rows stay in their revision. They are placed by its current tree, which does not grow. If a column of
        the revision was dropped, the files become unindexed.

        Raises:
            RowsChangedError: a key was lost.
        """
        removal = self.group.removal
        if removal is None:
            return self._write_remaining()
        self.inputs.transaction.write_deleted(removed_only(self._table_columns(), removal))
        output = self._write_remaining()
        check_keys(self.inputs.transaction, removal.order)
        return output

    def _table_columns(self) -> DataFrame:
        """The rows of all inputs without row ids, which the change feed has no columns for."""
        rows = self.inputs.transaction.scan([file.path for file in self.group.files], numbered=True)
        return rows.select(*map(quoted_name, self.inputs.snapshot.schema.names))

    def _write_remaining(self) -> RewriteOutput:
        """Writes the rows of the runs that stay."""
        group, snapshot, transaction = self.group, self.inputs.snapshot, self.inputs.transaction
        runs = group.runs
        if not runs:
            return RewriteOutput(-1, (), {})
        observe = self.context.observe
        observe(Step.PLACE)
        self.session.conf.set(_WRITERS_KEY, "1")
        self.session.conf.set(MOST_ROWS_KEY, str(group.rows_per_file or 0))
        rows = transaction.scan([path for run in runs for path in run.paths], group.removal is not None)
        if group.removal is not None:
            rows = without_removed(rows, group.removal)
        rows = transaction.in_runs(rows, [run.paths for run in runs])
        writer = LayoutWriter(self.session, transaction, snapshot, observe, strict=True)
        revision = snapshot.revisions[group.revision_id] if group.revision_id else None
        if revision is None or not snapshot.has_columns_of(revision):
            files = writer.write_unplaced(rows)
            observe(Step.VERIFY)
            return RewriteOutput(0, _unindexed_facts(files), _tags(files, group, self.facts, self.write_id))
        tree = Tree.current(revision.dimensions, snapshot.cube_states(revision))
        files = writer.write(rows, revision, tree)
        observe(Step.VERIFY)
        remaining = snapshot.cube_states(revision, [file.path for file in group.files])
        written = carry_thresholds(writer.blocks(files, revision, tree), tree, remaining)
        run_of, times = _runs_of(files, group), _times(group)
        tags = {}
        for file in written:
            paths = run_of[file.path].paths
            rewrites = self.facts.rewrites_of(paths) + 1
            history = FileHistory(self.write_id, *_span(paths, times), rewrites)
            tags[file.path] = tags_of(file, revision.revision_id, history)
        return RewriteOutput(revision.revision_id, tuple(facts_of(written)), tags)


def _unindexed_facts(files: Sequence[DataFile]) -> tuple[FileFacts, ...]:
    return tuple(FileFacts(f.path, f.size, f.rows, (), (), _UNINDEXED) for f in files)


def _runs_of(files: Sequence[DataFile], group: Concatenate) -> dict[str, FileRun]:
    """The run of each file written; files of unusual names may come from any run."""
    runs = group.runs
    tiers = [run.tier for run in runs if run.tier is not None]
    every = FileRun(tuple(path for run in runs for path in run.paths), max(tiers, default=None))
    run_of = {}
    for file in files:
        part = _PART.search(file.path)
        run_of[file.path] = runs[int(part[1])] if part is not None and int(part[1]) < len(runs) else every
    return run_of


def _times(group: Concatenate) -> dict[str, tuple[int, int]]:
    return {file.path: (file.first_time, file.last_time) for file in group.files}


def _span(run: Sequence[str], times: dict[str, tuple[int, int]]) -> tuple[int, int]:
    return min(times[path][0] for path in run), max(times[path][1] for path in run)


def _tags(files: Sequence[DataFile], group: Concatenate, facts: InputFacts, write_id: str) -> dict[str, dict[str, str]]:
    """The tags of unindexed files: when their rows were written first and last, and how often rewritten."""
    run_of, times = _runs_of(files, group), _times(group)
    tags = {}
    for file in files:
        run = run_of[file.path]
        first, last = _span(run.paths, times)
        tags[file.path] = {
            WRITE_TAG: write_id,
            TIME_RANGE_TAG: f"{first},{last}",
            REWRITES_TAG: f"{facts.rewrites_of(run.paths) + 1:.3f}",
            **({} if run.tier is None else {TIER_TAG: str(run.tier)}),
        }
    return tags
