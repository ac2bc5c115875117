"""Rewrites the rows of a group in a new layout: chooses the revision and the tree that they join, and writes them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from catalog.errors import ConcurrentChangeError, IndexConfigurationError
from catalog.properties.index_properties import IndexConfiguration
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot
from procedures.groups.group import Relayout
from procedures.layout.layout_writer import LayoutWriter
from procedures.layout.observation import Observation, observed
from procedures.layout.revision_choice import revision_for
from procedures.layout.step import Step
from procedures.layout.tags import WrittenFile, facts_of, tags_by_path
from procedures.layout.target import Target, target_for_new_rows, target_in_revision
from procedures.rewrite.inputs import InputFacts, Inputs
from procedures.rewrite.results import RewriteContext, RewriteOutput
from procedures.rewrite.revision_commit import Choice, commit_revision


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

    def observation(self, inputs: Inputs, rows: DataFrame) -> Observation | None:
        """What the rows say about the revision that they need; None when they stay in theirs.

        Raises:
            IndexConfigurationError: the table has no index columns.
        """
        configuration = self._configuration(inputs.snapshot)
        if self.group.revision_id:
            return None
        share = configuration.target_file_bytes / max(self.group.bytes, 1)
        return observed(rows, inputs.snapshot, configuration, self.group.rows, share)

    def choice(self, observed: TableSnapshot, seen: Observation | None, snapshot: TableSnapshot) -> Choice:
        """The revision that the rows need in a version of the table.

        Args:
            observed: the version in which the rows were observed.
            seen: what was observed; None when the rows stay in their revision.
            snapshot: the version, in which another run may have made a revision meanwhile.

        Raises:
            ConcurrentChangeError: the version indexes other columns than the rows were observed for, or is another
                table's.
        """
        group, clock = self.group, self.context.clock
        if seen is None or seen.weights.rows == 0:
            return group.revision_id, {}
        if snapshot.table_id != observed.table_id:
            raise ConcurrentChangeError("The table was replaced since the plan was made.")
        configuration, before = self._configuration(snapshot), self._configuration(observed)
        if (configuration.transformers, configuration.declared) != (before.transformers, before.declared):
            raise ConcurrentChangeError("The index columns were changed since the plan was made.")
        rows_of_file = int(configuration.target_file_bytes * seen.weights.rows / max(group.bytes, 1))
        revision, properties = revision_for(
            snapshot, configuration, seen.stats, rows_of_file, self.table.location, seen.weights, clock, observed
        )
        return revision.revision_id, properties

    def needs_revision(self, seen: Observation | None, snapshot: TableSnapshot) -> bool:
        """Whether the rows need a revision that the version in which they were observed does not have."""
        return bool(self.choice(snapshot, seen, snapshot)[1])

    def commit_revision(self, seen: Observation | None, observed: TableSnapshot) -> int | None:
        """Commits the revision that the rows need, without the rows.

        Args:
            seen: what was observed of the rows.
            observed: the version in which they were observed.

        Returns:
            The number of the revision that was made; None when the newest version has one that holds the rows.
        """
        self.context.observe(Step.REVISION)
        return commit_revision(self.table, self.session, lambda snapshot: self.choice(observed, seen, snapshot))

    def check_revision(self, observed: TableSnapshot, seen: Observation | None, snapshot: TableSnapshot) -> None:
        """Checks that a version has the revision that the rows need.

        Raises:
            ConcurrentChangeError: it has not.
        """
        if self.choice(observed, seen, snapshot)[1]:
            raise ConcurrentChangeError("Another run has made a revision meanwhile, which does not hold the rows.")

    def write(
        self, inputs: Inputs, rows: DataFrame, seen: Observation | None, facts: InputFacts, write_id: str
    ) -> RewriteOutput:
        """Writes the rows.

        Args:
            inputs: the transaction.
            rows: its rows.
            seen: what was observed of them.
            facts: what the log tells of the files that they come from.
            write_id: id of the write.
        """
        files = self.group.files
        target = self._target(inputs.snapshot, rows, seen)
        written: list[WrittenFile] = []
        if target is not None:
            # The settings of a rewrite's session collect statistics: blocks are counted while rows are written.
            writer = LayoutWriter(self.session, inputs.transaction, inputs.snapshot, self.context.observe, strict=True)
            written = writer.write_laid_out(target, rows)
        revision_id = target.columns.revision.revision_id if target else -1
        times = min(f.first_time for f in files), max(f.last_time for f in files)
        rewrites = facts.rewrites_of(tuple(f.path for f in files))
        tags = tags_by_path(written, revision_id, write_id, *times, rewrites + 1)
        return RewriteOutput(revision_id, tuple(facts_of(written)), tags, target.warning if target else None)

    def _configuration(self, snapshot: TableSnapshot) -> IndexConfiguration:
        configuration = snapshot.index_configuration
        if configuration is None:
            raise IndexConfigurationError.no_columns(self.table.name, self.group.strategy)
        return configuration

    def _target(self, snapshot: TableSnapshot, rows: DataFrame, seen: Observation | None) -> Target | None:
        """The revision and tree to write to; None when there are no rows to place."""
        group, session, clock = self.group, self.session, self.context.clock
        configuration = self._configuration(snapshot)
        replaced = [f.path for f in group.files]
        if seen is None:
            revision = snapshot.revisions[group.revision_id]
            share = configuration.target_file_bytes / max(group.bytes, 1)
            expected = rows.count() if group.rows is None else group.rows
            target = target_in_revision(session, snapshot, revision, replaced, rows, expected, share)
            return replace(target, weight_span=group.weight_span, sample_fractions=configuration.sample_fractions)
        if seen.weights.rows == 0:
            return None
        return target_for_new_rows(
            session, snapshot, configuration, seen, rows, lambda _: group.bytes, self.table.location, clock, replaced
        )
