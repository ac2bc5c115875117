"""The health of a table, from its metadata."""

from __future__ import annotations

from catalog.clock import Clock
from catalog.history.recent_events import recent_failures
from catalog.jvm.session import described_jobs
from catalog.properties.index_properties import is_outdated
from catalog.properties.target_file_size import TARGET_FILE_BYTES
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot
from procedures.insight.health.diagnosis import FAILURE_MILLIS, Diagnosis, are_indexed
from procedures.insight.health.health_parts import HealthFacts
from procedures.insight.health.score import Part, score_of


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


def _facts_of(table: ManagedTable, snapshot: TableSnapshot, clock: Clock) -> HealthFacts:
    files, newest = snapshot.file_table, snapshot.latest_revision
    index = snapshot.index_configuration
    commits = snapshot.version - table.handle.versions(table.spark).checkpoint_before(snapshot.version)
    return HealthFacts(
        name=table.name,
        files=files,
        newest=newest,
        is_indexed=are_indexed(snapshot.revisions, files, newest),
        cube_rows=files.rows_of_cubes(newest),
        has_index_columns=index is not None,
        target_bytes=TARGET_FILE_BYTES.value(snapshot.settings),
        commits=commits,
        # A version that was loaded before its checkpoint was written still names the commits.
        commit_bytes=snapshot.extent.commit_bytes if commits else 0,
        failures=recent_failures(table, snapshot.table_id, clock.now() - FAILURE_MILLIS),
        clustering=snapshot.state.clustering_columns(),
        is_outdated=is_outdated(index, newest, snapshot.configuration),
        fractions=() if index is None else index.sample_fractions,
    )
