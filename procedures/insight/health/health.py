"""The health of a table, from its metadata."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from catalog.clock import Clock
from catalog.files.file_table import FileTable, Flags
from catalog.history.recent_events import recent_failures
from catalog.jvm.session import described_jobs
from catalog.properties.target_file_size import TARGET_FILE_BYTES
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot
from otree.revision import Revision
from procedures.insight.health.adviser import MeasuredIndex, advice_on, steps_of
from procedures.insight.health.health_parts import HealthFacts, parts_of
from procedures.insight.health.remedy import AdviceStep
from procedures.insight.health.score import Part, score_of
from procedures.selection.revision_rewrite import is_outdated

# Files that the driver judges; each takes about a kilobyte of its memory.
_WEEK_MILLIS = 7 * 24 * 3600 * 1000


@dataclass(frozen=True)
class Diagnosis:
    """The state of one version of a table.

    Attributes:
        facts: those from which it is computed.
        parts: parts of the score.
        steps: the advised steps, in order.
    """

    facts: HealthFacts
    parts: list[Part]
    steps: tuple[AdviceStep, ...]

    @property
    def score(self) -> int:
        """From 0 to 100."""
        return score_of(self.parts)

    def steps_with(self, measured: MeasuredIndex | None) -> tuple[AdviceStep, ...]:
        """Returns the steps, with an index that was measured.

        Args:
            measured: the index; None if none saves enough.
        """
        return self.steps if measured is None else steps_of(self.facts, self.parts, measured)

    def statement_for(self, part: Part) -> str | None:
        """Returns the statement that improves a part; None if it loses no point or no step is worth its cost.

        Args:
            part: one of ``parts``.
        """
        advice = advice_on(self.facts, self.parts, part) if part.lost else None
        return None if advice is None else advice.statement


def diagnosis_of(table: ManagedTable, clock: Clock) -> Diagnosis:
    """Measures the parts of a table's health, and computes the advice; reads metadata only.

    Args:
        table: the table.
        clock: the time.

    Raises:
        TooComplexError: the table has too many files; see ``TableSnapshot.columns``.
    """
    with described_jobs(table.spark, f"USE health: {table.name}"):
        facts = _facts_of(table, table.snapshot(), clock)
    parts = parts_of(facts)
    return Diagnosis(facts, parts, steps_of(facts, parts))


def health_of(table: ManagedTable, clock: Clock) -> list[Part]:
    """Measures the parts of a table's health; see ``diagnosis_of``."""
    return diagnosis_of(table, clock).parts


def table_score(table: ManagedTable, clock: Clock) -> int:
    """Returns the score of a table's health, from 0 to 100.

    Args:
        table: the table.
        clock: the time.

    Raises:
        TooComplexError: see ``health_of``.
    """
    return score_of(health_of(table, clock))


def _facts_of(table: ManagedTable, snapshot: TableSnapshot, clock: Clock) -> HealthFacts:
    files, newest = snapshot.file_table, snapshot.latest_revision
    is_indexed = np.zeros(len(files), np.bool_) if newest is None else are_indexed(snapshot, files, newest)
    index = snapshot.index_configuration
    commits = snapshot.version - table.handle.versions(table.spark).checkpoint_before(snapshot.version)
    return HealthFacts(
        name=table.name,
        files=files,
        newest=newest,
        is_indexed=is_indexed,
        cubes={} if newest is None else snapshot.cube_states(newest),
        has_index_columns=index is not None,
        target_bytes=TARGET_FILE_BYTES.value(snapshot.settings),
        commits=commits,
        # A version that was loaded before its checkpoint was written still names the commits.
        commit_bytes=snapshot.extent.commit_bytes if commits else 0,
        failures=recent_failures(table, snapshot.table_id, clock.now() - _WEEK_MILLIS),
        clustering=snapshot.state.clustering_columns(),
        is_outdated=newest is not None and is_outdated(snapshot, newest),
        fractions=() if index is None else index.sample_fractions,
    )


def are_indexed(snapshot: TableSnapshot, files: FileTable, newest: Revision) -> Flags:
    """Whether the index skips each file by weight: weights are hashes of the columns of the newest revision.

    Args:
        snapshot: the version.
        files: its files.
        newest: its newest revision.
    """
    alike = [number for number, revision in snapshot.revisions.items() if revision.columns == newest.columns]
    return np.isin(files.revision, alike) & (files.revision > 0)
