"""Rewrites the rows of a group in a new layout: decides which revision they join, and writes them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from catalog.errors import ConcurrentChangeError, IndexConfigurationError, UseError
from catalog.jvm.java_errors import is_conflict, text_of
from catalog.properties.index_properties import IndexConfiguration
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot
from otree.revision import Revision
from procedures.groups.group import Relayout
from procedures.layout.layout_writer import LayoutWriter
from procedures.layout.row_measures import RowMeasures, measure_rows
from procedures.layout.step import Step
from procedures.layout.tags import FileHistory, WrittenFile, facts_of, tags_by_path
from procedures.layout.target import Target, revision_for, target_for_new_rows, target_in_revision
from procedures.rewrite.inputs import InputFacts, Inputs
from procedures.rewrite.results import RewriteContext, RewriteOutput

logger = logging.getLogger(__name__)

REVISION_OPERATION = "USE REVISION"
# Only other changes of the metadata conflict with the commit of a revision; several in a row are rare.
MAX_ATTEMPTS = 10


class RevisionChoice(NamedTuple):
    """The revision that rows join.

    Attributes:
        revision: the revision.
        properties: the table properties that make it; none when it exists.
    """

    revision: Revision
    properties: Mapping[str, str]


class MeasuredRows(NamedTuple):
    """The rows of a group, and the revision that they join.

    Attributes:
        data: the rows.
        version: the version of the table in which they were measured.
        measures: what was measured. None when the rows stay in their revision.
        choice: the revision. None when there are no rows.
    """

    data: DataFrame
    version: TableSnapshot
    measures: RowMeasures | None
    choice: RevisionChoice | None

    @property
    def needs_commit(self) -> bool:
        """Whether the revision has to be made first."""
        return self.choice is not None and bool(self.choice.properties)


@dataclass(frozen=True)
class LayoutRewrite:
    """One rewrite of rows that are laid out anew.

    Attributes:
        table: the table.
        session: session of the work.
        group: what a plan chose.
        context: see there.
    """

    table: ManagedTable
    session: SparkSession
    group: Relayout
    context: RewriteContext

    def measured(self, inputs: Inputs) -> MeasuredRows:
        """Measures the rows and decides which revision they join.

        Raises:
            IndexConfigurationError: the table has no index columns.
        """
        group, snapshot = self.group, inputs.snapshot
        configuration = self._configuration(snapshot)
        data = inputs.transaction.read()
        if group.revision_id:
            return MeasuredRows(data, snapshot, None, RevisionChoice(snapshot.revisions[group.revision_id], {}))
        share = configuration.target_file_bytes / max(group.bytes, 1)
        measures = measure_rows(data, snapshot, configuration, group.rows, share)
        if _may_be_a_band(group, snapshot, configuration):
            measures = replace(measures, weights=replace(measures.weights, has_gaps=False))
        choice = self._choice(snapshot, measures, snapshot) if measures.weights.rows else None
        return MeasuredRows(data, snapshot, measures, choice)

    def commit_revision(self, rows: MeasuredRows) -> int | None:
        """Commits the revision that the rows need, without the rows.

        Returns:
            The number of the revision that was made; None when the newest version has one that holds the rows.
        """
        self.context.observe(Step.REVISION)

        def choose(snapshot: TableSnapshot) -> tuple[int, Mapping[str, str]]:
            choice = self._choice_in(snapshot, rows)
            return choice.revision.revision_id, choice.properties

        return commit_revision(self.table, self.session, choose)

    def after_commit(self, rows: MeasuredRows, inputs: Inputs) -> MeasuredRows:
        """The same rows after ``commit_revision``, as a new transaction reads them.

        Raises:
            ConcurrentChangeError: the version that it reads has no revision that holds the rows, indexes other columns,
                or is another table's.
        """
        snapshot, choice = inputs.snapshot, rows.choice
        assert choice is not None
        if not _has_configuration(snapshot, rows.version, choice.properties):
            choice = self._choice_in(snapshot, rows)
            if choice.properties:
                raise ConcurrentChangeError("Another run has made a revision meanwhile, which does not hold the rows.")
        # As every reader of the table has it.
        revision = snapshot.revisions[choice.revision.revision_id]
        return rows._replace(data=inputs.transaction.read(), choice=RevisionChoice(revision, {}))

    def write(self, inputs: Inputs, rows: MeasuredRows, facts: InputFacts, write_id: str) -> RewriteOutput:
        """Writes the rows.

        Args:
            inputs: the transaction.
            rows: its rows.
            facts: what the log tells of the files that they come from.
            write_id: id of the write.
        """
        files = self.group.files
        target = self._target(inputs.snapshot, rows)
        written: list[WrittenFile] = []
        if target is not None:
            # The settings of a rewrite's session collect statistics: blocks are counted while rows are written.
            writer = LayoutWriter(self.session, inputs.transaction, inputs.snapshot, self.context.observe, strict=True)
            written = writer.write_laid_out(target, rows.data)
        revision_id = target.columns.revision.revision_id if target else -1
        times = min(f.first_time for f in files), max(f.last_time for f in files)
        rewrites = facts.rewrites_of(tuple(f.path for f in files))
        tags = tags_by_path(written, revision_id, FileHistory(write_id, *times, rewrites + 1))
        return RewriteOutput(revision_id, tuple(facts_of(written)), tags, target.warning if target else None)

    def _choice_in(self, snapshot: TableSnapshot, rows: MeasuredRows) -> RevisionChoice:
        """The revision that the rows need in a version; decided anew only if another writer changed the metadata."""
        assert rows.measures is not None
        assert rows.choice is not None
        if _has_configuration(snapshot, rows.version, {}):
            return rows.choice
        return self._choice(rows.version, rows.measures, snapshot)

    def _choice(self, measured: TableSnapshot, measures: RowMeasures, snapshot: TableSnapshot) -> RevisionChoice:
        """Chooses the revision that rows need in a version of the table.

        Args:
            measured: the version in which the rows were measured.
            measures: what was measured; at least one row.
            snapshot: the version, in which another run may have made a revision meanwhile.

        Raises:
            ConcurrentChangeError: the version indexes other columns than the rows were measured for, or is another
                table's.
        """
        if snapshot.table_id != measured.table_id:
            raise ConcurrentChangeError("The table was replaced since the plan was made.")
        configuration, before = self._configuration(snapshot), self._configuration(measured)
        if (configuration.transformers, configuration.declared) != (before.transformers, before.declared):
            raise ConcurrentChangeError("The index columns were changed since the plan was made.")
        rows_of_file = int(configuration.target_file_bytes * measures.weights.rows / max(self.group.bytes, 1))
        location, clock = self.table.location, self.context.clock
        return RevisionChoice(
            *revision_for(
                snapshot, configuration, measures.stats, rows_of_file, location, measures.weights, clock, measured
            )
        )

    def _configuration(self, snapshot: TableSnapshot) -> IndexConfiguration:
        configuration = snapshot.index_configuration
        if configuration is None:
            raise IndexConfigurationError.no_columns(self.table.name, self.group.strategy)
        return configuration

    def _target(self, snapshot: TableSnapshot, rows: MeasuredRows) -> Target | None:
        """The revision and tree to write to; None when there are no rows to place."""
        group, session = self.group, self.session
        if rows.choice is None:
            return None
        configuration, revision, data = self._configuration(snapshot), rows.choice.revision, rows.data
        replaced = [f.path for f in group.files]
        size = max(group.bytes, 1)
        if rows.measures is None:
            share = configuration.target_file_bytes / size
            expected = data.count() if group.rows is None else group.rows
            target = target_in_revision(session, snapshot, revision, replaced, data, expected, share)
            return replace(target, weight_span=group.weight_span, sample_fractions=configuration.sample_fractions)
        return target_for_new_rows(session, snapshot, configuration, revision, {}, rows.measures, data, size, replaced)


def _may_be_a_band(group: Relayout, snapshot: TableSnapshot, configuration: IndexConfiguration) -> bool:
    """Whether rows may have been put into their files by the weights that they have in the new revision, too."""
    columns = tuple(transformer.column for transformer in configuration.transformers)
    same = any(revision.columns == columns for revision in snapshot.revisions.values() if not revision.is_staging)
    return same and any(file.level >= 0 for file in group.files)


def _has_configuration(snapshot: TableSnapshot, former: TableSnapshot, properties: Mapping[str, str]) -> bool:
    """Whether a version has the metadata of a former one, with some more properties."""
    return (
        snapshot.table_id == former.table_id
        and snapshot.configuration == {**former.configuration, **properties}
        and snapshot.schema == former.schema
        and snapshot.partition_columns == former.partition_columns
    )


def commit_revision(
    table: ManagedTable, session: SparkSession, choose: Callable[[TableSnapshot], tuple[int, Mapping[str, str]]]
) -> int | None:
    """Makes the revision that ``choose`` asks for, in a commit that changes properties only.

    Each attempt reads the newest version, chooses and commits. Delta rebases the commit on concurrent appends, deletes
    and rewrites. A concurrent change of the metadata is a conflict, and the next attempt chooses again.

    Args:
        table: the table.
        session: session of the commit.
        choose: returns the number of the revision that a version of the table needs, and the properties that make it,
            none when it exists; reads metadata only.

    Returns:
        The number of the revision that was made; None when the newest version needed none.

    Raises:
        ConcurrentChangeError: every attempt met a concurrent change of the metadata; nothing was committed.
    """
    for attempt in range(1, MAX_ATTEMPTS + 1):
        transaction = table.transaction(session)
        number, properties = choose(TableSnapshot.of(transaction.state()))
        if not properties:
            return None
        transaction.configure(properties)
        try:
            version = transaction.commit_properties(REVISION_OPERATION, {"revision": str(number)})
        except (Py4JJavaError, PySparkException) as error:
            if not is_conflict(error):
                # The answer of the file system may be lost although the commit is there. If it appears later, the
                # revision has no files, which harms nobody.
                if _is_made(table, choose, number):
                    return number
                raise
            if attempt < MAX_ATTEMPTS:
                continue
            raise ConcurrentChangeError(
                f"Other writers changed the metadata {MAX_ATTEMPTS} times; no revision was made: {text_of(error)}"
            ) from error
        logger.info("%s: version %d makes revision %d", table.name, version, number)
        return number
    return None


def _is_made(
    table: ManagedTable, choose: Callable[[TableSnapshot], tuple[int, Mapping[str, str]]], number: int
) -> bool:
    """Whether the newest version has the revision and needs no other, as far as it can be read."""
    try:
        chosen, properties = choose(table.snapshot())
        return chosen == number and not properties
    except (UseError, Py4JJavaError, PySparkException):
        return False
