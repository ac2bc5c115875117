"""The service chooses index columns from recorded reads: it measures, proposes, and sets what it has proposed."""

from __future__ import annotations

import logging
from dataclasses import replace

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from catalog.columns.column_names import find_column, written_name
from catalog.errors import ConcurrentChangeError, UseError
from catalog.jvm.java_errors import is_conflict, text_of
from catalog.jvm.session import described_jobs
from catalog.properties.column_choice import ColumnChoicePolicy
from catalog.properties.index_properties import (
    AUTO_COLUMNS_KEY,
    AUTO_PERIOD_KEY,
    COLUMNS_KEY,
    IndexConfiguration,
    column_entries,
)
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot
from otree.errors import IndexFormatError
from procedures.insight.recommendation.column_choice import (
    LEAST_READS,
    LEAST_SPAN_MILLIS,
    PROPOSAL_MILLIS,
    ChoiceState,
    Chosen,
    Proposal,
    choice_state,
    decide,
)
from procedures.insight.recommendation.measurement import consumption_rows, filtered_reads, measure_recorded

logger = logging.getLogger(__name__)

OPERATION = "USE COLUMN CHOICE"
# Each of them is planned; that many stand for all recorded reads.
_MOST_QUERIES = 100


def look_at_columns(table: ManagedTable, policy: ColumnChoicePolicy, now: int) -> None:
    """Looks at the recorded reads of a table: proposes index columns, or sets those that it has proposed.

    Args:
        table: the table, whose owner leaves the choice to the service.
        policy: what its properties ask for.
        now: epoch milliseconds.

    Raises:
        UseError: the recommended columns do not fit the other properties of the index.
        ConcurrentChangeError: another writer has changed the metadata at the same time.
    """
    snapshot, stored = table.snapshot(), choice_state(table)
    if not policy.is_recorded or AUTO_PERIOD_KEY not in snapshot.settings or snapshot.state.clustering_columns():
        return
    text = snapshot.settings.get(COLUMNS_KEY)
    state = stored
    if text is not None and (stored.chosen is None or stored.chosen.columns != text):
        # Nobody knows since when: the period begins now.
        state = replace(stored, proposal=None, chosen=Chosen(text, now))
    # An index that nobody has chosen may be replaced at once.
    present = _indexed_without_choice(snapshot, now - policy.period) if text is None else state.chosen
    is_measured = state.measured_at is not None and 0 <= now - state.measured_at < PROPOSAL_MILLIS
    if not is_measured and (present is None or now - present.since >= policy.period):
        with described_jobs(table.spark, f"USE service: index columns of {table.name} from recorded reads"):
            reads, span = filtered_reads(table)
            state = replace(state, reads=reads)
            if reads >= LEAST_READS and span >= LEAST_SPAN_MILLIS and snapshot.bytes:
                # Stored first: after an error, the next measurement is as far away as after a result.
                state = replace(state, measured_at=now)
                state.put(table)
                state = _decided(table, snapshot, state, present, policy, now)
    if state != stored:
        state.put(table)


def _decided(
    table: ManagedTable,
    snapshot: TableSnapshot,
    state: ChoiceState,
    present: Chosen | None,
    policy: ColumnChoicePolicy,
    now: int,
) -> ChoiceState:
    """Measures candidates, and sets columns that are due."""
    measured = measure_recorded(table, snapshot, consumption_rows(table, _MOST_QUERIES, are_spread=True))
    before = measured.no_index if present is None else measured.share_with(_written(snapshot, present.columns))
    best, recommended = measured.ranked[0], None
    columns = measured.text_of(best)
    if columns is not None:
        wanted = snapshot.settings | {COLUMNS_KEY: columns}
        IndexConfiguration.of(wanted, snapshot.schema, snapshot.latest_revision, snapshot.partition_columns)
        recommended = Proposal(columns, now, state.reads, before, best.share)
    proposal = decide(state.proposal, recommended, present, policy.period)
    if recommended is None or proposal is None or not proposal.is_due(now):
        return replace(state, proposal=proposal)
    # What was measured now: anybody may have written the file.
    _set(table, snapshot, recommended)
    return replace(state, proposal=None, chosen=Chosen(recommended.columns, now))


def _indexed_without_choice(snapshot: TableSnapshot, since: int) -> Chosen | None:
    """The columns of an index that the table has, although none are chosen; None without one."""
    try:
        index = snapshot.index_configuration
    except (UseError, IndexFormatError):
        # Its columns are gone.
        return None
    if index is None:
        return None
    found = [find_column(snapshot.schema, name) for name in index.logical_columns]
    return Chosen(",".join(written_name(snapshot.schema, column) for column in found if column is not None), since)


def _written(snapshot: TableSnapshot, columns: str) -> list[str]:
    found = [find_column(snapshot.schema, name) for name, _ in column_entries(AUTO_COLUMNS_KEY, columns)]
    return [written_name(snapshot.schema, column) for column in found if column is not None]


def _set(table: ManagedTable, snapshot: TableSnapshot, recommended: Proposal) -> None:
    transaction = table.transaction(table.spark)
    current = TableSnapshot.of(transaction.state(), table.location)
    before = snapshot.configuration.get(AUTO_COLUMNS_KEY)
    if AUTO_PERIOD_KEY not in current.settings or current.configuration.get(AUTO_COLUMNS_KEY) != before:
        raise ConcurrentChangeError("Another writer has changed the index columns meanwhile; none were chosen.")
    transaction.configure({AUTO_COLUMNS_KEY: recommended.columns})
    parameters = {
        AUTO_COLUMNS_KEY: recommended.columns,
        "replaces": before or "",
        "recordedReads": str(recommended.reads),
        "shareBefore": f"{recommended.before:.4f}",
        "shareAfter": f"{recommended.after:.4f}",
    }
    try:
        version = transaction.commit_properties(OPERATION, parameters)
    except (Py4JJavaError, PySparkException) as error:
        if not is_conflict(error):
            raise
        raise ConcurrentChangeError(
            f"A concurrent commit changed the table; no index columns were chosen: {text_of(error)}"
        ) from error
    logger.info("%s: version %d chooses the index columns %s", table.name, version, recommended.columns)
