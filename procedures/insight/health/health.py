"""The health of a table, from its metadata."""

from __future__ import annotations

from catalog.clock import Clock
from catalog.jvm.session import described_jobs
from catalog.table.managed_table import ManagedTable
from procedures.insight.health.diagnosis import Diagnosis
from procedures.insight.health.score import Part, score_of
from procedures.insight.health.version_facts import facts_of


def diagnosis_of(table: ManagedTable, clock: Clock) -> Diagnosis:
    """Measures the parts of a table's health, and computes the advice; reads metadata only.

    Args:
        table: the table.
        clock: the time.

    Raises:
        TooComplexError: the table has too many files; see ``TableSnapshot.columns``.
    """
    with described_jobs(table.spark, f"USE health: {table.name}"):
        snapshot = table.snapshot()
        facts = facts_of(
            table,
            snapshot,
            clock,
            commits=snapshot.version - table.handle.versions(table.spark).checkpoint_before(snapshot.version),
            commit_bytes=snapshot.extent.commit_bytes,
            clustering=snapshot.state.clustering_columns(),
        )
    return Diagnosis.of(facts)


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
