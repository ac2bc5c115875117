"""The health of a table from its log: the same facts and computation as ``CALL use.health``."""

from __future__ import annotations

from catalog.clock import SYSTEM_CLOCK, Clock
from procedures.insight.health.diagnosis import Diagnosis
from procedures.insight.health.version_facts import facts_of
from sql_ext.from_log.log_table import LogTable


def diagnosis_of(table: LogTable, clock: Clock = SYSTEM_CLOCK) -> Diagnosis:
    """Measures the parts of a table's health, and computes the advice.

    Args:
        table: the table.
        clock: the time.

    Raises:
        UseError: a property is wrong, or the files cannot be read without Spark.
    """
    segment = table.log_segment
    return Diagnosis.of(
        facts_of(
            table,
            table,
            clock,
            commits=table.version - segment.checkpoint,
            commit_bytes=segment.commit_bytes,
            clustering=table.clustering_columns,
        )
    )
