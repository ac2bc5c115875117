"""Metrics of the service: their declarations, and the counts of one process."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from catalog.state import automation
from catalog.state.automation import Automation

COUNTER, GAUGE = "counter", "gauge"
COMPLETED, FAILED, CONFLICT, STOPPED, LEASE_HELD = "completed", "failed", "conflict", "stopped", "lease_held"
RUN_OUTCOMES = (COMPLETED, FAILED, CONFLICT, STOPPED, LEASE_HELD)
TABLE_STATES = (
    automation.SCHEDULED,
    automation.WAITING,
    automation.RUNNING,
    automation.SUSPENDED,
    automation.FAILED,
)


@dataclass(frozen=True)
class Metric:
    """The declaration of a metric.

    Attributes:
        name: name in Prometheus, with the unit; the name of a counter ends in ``_total``.
        kind: ``counter`` or ``gauge``.
        doc: one sentence.
        label: name of its label; None if it has none.
        label_values: the values of the label; empty if they are names of tables.
    """

    name: str
    kind: str
    doc: str
    label: str | None = None
    label_values: tuple[str, ...] = ()

    def spark_name(self, label_value: str | None) -> str:
        """Returns the name in Spark's metrics, below the source ``use``.

        Args:
            label_value: value of the label; None without one.
        """
        name = self.name.removeprefix("use_")
        return name if label_value is None else f"{name}.{label_value}"


RUNS = Metric("use_service_runs_total", COUNTER, "Runs that have ended, by outcome.", "outcome", RUN_OUTCOMES)
INPUT_BYTES = Metric("use_service_input_bytes_total", COUNTER, "Bytes of the files that committed groups replaced.")
OUTPUT_BYTES = Metric("use_service_output_bytes_total", COUNTER, "Bytes of the files that committed groups wrote.")
CONFLICTING_GROUPS = Metric(
    "use_service_conflicting_groups_total", COUNTER, "Groups that a concurrent write prevented."
)
TABLES = Metric("use_service_tables", GAUGE, "Tables under automatic optimization, by state.", "state", TABLE_STATES)
QUEUED_TABLES = Metric("use_service_queued_tables", GAUGE, "Tables that are due and whose run has not started.")
SCANS = Metric("use_recorded_scans_total", COUNTER, "Scans of finished queries that were recorded.")
READ_BYTES = Metric("use_recorded_read_bytes_total", COUNTER, "Bytes of the files that recorded scans read.")
SKIPPED_BYTES = Metric(
    "use_recorded_skipped_bytes_total",
    COUNTER,
    "Bytes of the files that recorded scans skipped, by what excluded them.",
    "step",
    ("partitions", "statistics", "limit", "cubes", "weights", "joins"),
)
DROPPED_RECORDS = Metric("use_dropped_records_total", COUNTER, "Records of scans that were dropped from a full queue.")
RECORDING_TIME = Metric(
    "use_recording_microseconds_total", COUNTER, "Time that records of scans took on the thread of the listener."
)

SERVICE_METRICS = (RUNS, INPUT_BYTES, OUTPUT_BYTES, CONFLICTING_GROUPS, TABLES, QUEUED_TABLES)
"""The metrics of the service."""
READ_METRICS = (SCANS, READ_BYTES, SKIPPED_BYTES, DROPPED_RECORDS, RECORDING_TIME)
"""The metrics of the listener of queries in the JVM."""
METRICS = (*SERVICE_METRICS, *READ_METRICS)

_OF_TABLE = "table"
TABLE_RUNS = Metric("use_table_runs_total", COUNTER, "Runs that have ended, by table.", _OF_TABLE)
TABLE_FAILED_RUNS = Metric("use_table_failed_runs_total", COUNTER, "Runs that have failed, by table.", _OF_TABLE)
TABLE_INPUT_BYTES = Metric(
    "use_table_input_bytes_total", COUNTER, "Bytes of the files that committed groups replaced, by table.", _OF_TABLE
)
TABLE_OUTPUT_BYTES = Metric(
    "use_table_output_bytes_total", COUNTER, "Bytes of the files that committed groups wrote, by table.", _OF_TABLE
)
TABLE_METRICS = (TABLE_RUNS, TABLE_FAILED_RUNS, TABLE_INPUT_BYTES, TABLE_OUTPUT_BYTES)
"""The metrics of the service by table; they exist only on request."""
OTHER_TABLES = "other"
"""The table of these metrics that stands for those beyond the limit."""


@dataclass(frozen=True)
class RunTotals:
    """The totals of a run's groups.

    Attributes:
        input_bytes: bytes of the files that committed groups replaced.
        output_bytes: bytes of the files that committed groups wrote.
        conflicting_groups: number of groups that a concurrent write prevented.
        lease_held: whether another run held the lease of the table.
        ended_by_conflict: whether the last group had a conflict.
        input_files: number of files that committed groups replaced.
        output_files: number of files that committed groups wrote.
        reasons: of committed groups, each as its code and its strategy, without repetitions.
        failures: codes of the errors of failed groups, without repetitions.
    """

    input_bytes: int = 0
    output_bytes: int = 0
    conflicting_groups: int = 0
    lease_held: bool = False
    ended_by_conflict: bool = False
    input_files: int = 0
    output_files: int = 0
    reasons: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sample:
    """The value of a metric, for one value of its label; None if it has no label."""

    metric: Metric
    label_value: str | None
    value: int


class ServiceMetrics:
    """The counts of a service since its process started.

    Args:
        most_tables: so many tables have series of their own, the first ones that have a run. The others are one series.
            0 = there are no metrics by table.
    """

    def __init__(self, most_tables: int = 0) -> None:
        self._most_tables = most_tables
        self._tables: dict[str, Counter[str]] = {}
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str | None]] = Counter()
        self._reads: Mapping[str, int] = {}

    def record_run(self, outcome: str, totals: RunTotals, table: str = OTHER_TABLES) -> None:
        """Counts a run that has ended.

        Args:
            outcome: one of ``RUN_OUTCOMES``.
            totals: of its groups.
            table: full name of its table.
        """
        with self._lock:
            self._counts[RUNS.name, outcome] += 1
            self._counts[INPUT_BYTES.name, None] += totals.input_bytes
            self._counts[OUTPUT_BYTES.name, None] += totals.output_bytes
            self._counts[CONFLICTING_GROUPS.name, None] += totals.conflicting_groups
            if self._most_tables:
                self._count_table(table, outcome, totals)

    def _count_table(self, table: str, outcome: str, totals: RunTotals) -> None:
        if table not in self._tables and len(self._tables.keys() - {OTHER_TABLES}) >= self._most_tables:
            table = OTHER_TABLES
        counts = self._tables.setdefault(table, Counter())
        counts[TABLE_RUNS.name] += 1
        counts[TABLE_FAILED_RUNS.name] += outcome == FAILED
        counts[TABLE_INPUT_BYTES.name] += totals.input_bytes
        counts[TABLE_OUTPUT_BYTES.name] += totals.output_bytes

    def record_reads(self, numbers: Mapping[str, int]) -> None:
        """Replaces what the listener of queries has counted.

        Args:
            numbers: by their names in Spark's metrics.
        """
        self._reads = dict(numbers)

    def samples(self, tables: Sequence[Automation], now: int) -> list[Sample]:
        """Returns a sample for each metric and each value of its label, including those that are 0.

        Args:
            tables: the tables under automatic optimization.
            now: epoch milliseconds.
        """
        reads = self._reads
        return [
            *self.service_samples(tables, now),
            *(Sample(m, value, reads.get(m.spark_name(value), 0)) for m, value in _series(READ_METRICS)),
            *self._table_samples(),
        ]

    def _table_samples(self) -> list[Sample]:
        with self._lock:
            tables = {name: Counter(counts) for name, counts in self._tables.items()}
        return [Sample(metric, name, tables[name][metric.name]) for metric in TABLE_METRICS for name in sorted(tables)]

    def service_samples(self, tables: Sequence[Automation], now: int) -> list[Sample]:
        """Returns the samples of ``SERVICE_METRICS``.

        Args:
            tables: the tables under automatic optimization.
            now: epoch milliseconds.
        """
        with self._lock:
            counts = Counter(self._counts)
        for state, count in Counter(table.state for table in tables).items():
            counts[TABLES.name, state] += count
        counts[QUEUED_TABLES.name, None] += sum(_is_queued(table, now) for table in tables)
        return [Sample(m, value, counts[m.name, value]) for m, value in _series(SERVICE_METRICS)]


def _series(metrics: Sequence[Metric]) -> list[tuple[Metric, str | None]]:
    """Each metric with each value of its label."""
    return [(metric, value) for metric in metrics for value in (metric.label_values or (None,))]


def _is_queued(table: Automation, now: int) -> bool:
    """Whether a table waits for the cluster, or is due while other runs use up the limit of tables."""
    if table.state == automation.WAITING:
        return True
    is_due = table.next_run is not None and table.next_run <= now
    return is_due and table.state in (automation.SCHEDULED, automation.FAILED)
