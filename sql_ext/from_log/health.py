"""The health of a table from its log: the same facts and computation as ``CALL use.health``."""

from __future__ import annotations

from catalog.clock import SYSTEM_CLOCK, Clock
from catalog.history.recent_events import recent_failures
from catalog.properties.index_properties import is_outdated
from catalog.properties.target_file_size import TARGET_FILE_BYTES
from procedures.insight.health.diagnosis import FAILURE_MILLIS, Diagnosis, are_indexed
from procedures.insight.health.health_parts import HealthFacts
from sql_ext.from_log.log_table import LogTable


def diagnosis_of(table: LogTable, clock: Clock = SYSTEM_CLOCK) -> Diagnosis:
    """Measures the parts of a table's health, and computes the advice.

    Args:
        table: the table.
        clock: the time.

    Raises:
        UseError: a property is wrong, or the files cannot be read without Spark.
    """
    newest, index, segment = table.latest_revision, table.index_configuration, table.log_segment
    files = table.file_table
    commits = table.version - segment.checkpoint
    return Diagnosis.of(
        HealthFacts(
            name=table.name,
            files=files,
            newest=newest,
            is_indexed=are_indexed(table.revisions, files, newest),
            cube_rows=files.rows_of_cubes(newest),
            has_index_columns=index is not None,
            target_bytes=TARGET_FILE_BYTES.value(table.settings),
            commits=commits,
            commit_bytes=segment.commit_bytes if commits else 0,
            failures=recent_failures(table, table.table_id, clock.now() - FAILURE_MILLIS),
            clustering=table.clustering_columns,
            is_outdated=is_outdated(index, newest, table.configuration),
            fractions=() if index is None else index.sample_fractions,
        )
    )
