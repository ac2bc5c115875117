"""The choice of index columns from recorded reads: what is proposed, when a proposal counts, and what is stored."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from catalog.columns.column_names import split_names
from catalog.epoch_millis import LAST_MILLIS, moment
from catalog.properties.index_properties import AUTO_PERIOD_KEY, COLUMNS_KEY
from catalog.properties.insight_properties import CONSUMPTION_ENABLED, records_scans
from catalog.quantities import share_text
from catalog.state.state_files import FieldError, Fields, Missing, Unreadable, parse, read
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot

STATE_FILE = "column_choice.json"
_ADVICE = "The service proposes index columns anew, and the period of a choice begins again; the file is replaced."

LEAST_READS = 20
LEAST_SPAN_MILLIS = 86_400_000
"""So many recorded reads with filters, over so much time, say enough about the reads of a table."""
PROPOSAL_MILLIS = 86_400_000
"""How long columns are proposed before they are set; also the time between two measurements."""
_LEAST_SAVING = 0.1


@dataclass(frozen=True)
class Proposal:
    """Index columns that the service sets unless other reads change the recommendation.

    Attributes:
        columns: as ``use.index.columns`` has them.
        since: epoch milliseconds.
        reads: number of recorded reads with filters.
        before: share of the bytes that they read with the present columns, or without an index.
        after: the same with the proposed columns.
    """

    columns: str
    since: int
    reads: int
    before: float
    after: float

    def is_due(self, now: int) -> bool:
        """Whether its columns are to be set, if they are still recommended; ``now`` in epoch milliseconds."""
        return now - self.since >= PROPOSAL_MILLIS


@dataclass(frozen=True)
class Chosen:
    """The index columns of a table, and since when it has them, in epoch milliseconds."""

    columns: str
    since: int


def decide(
    proposal: Proposal | None, recommended: Proposal | None, chosen: Chosen | None, period: int
) -> Proposal | None:
    """Returns the proposal that is in force after a measurement. This function is pure.

    Args:
        proposal: the one in force so far.
        recommended: the result of the measurement, as a proposal that begins now; None if no index pays.
        chosen: the index columns that the table has; None for none.
        period: milliseconds between two changes of the columns, at least.
    """
    if recommended is None:
        return None
    now, names = recommended.since, _names(recommended.columns)
    if chosen is not None:
        is_better = recommended.after <= (1 - _LEAST_SAVING) * recommended.before
        if now - chosen.since < period or not is_better or names == _names(chosen.columns):
            return None
    is_same = proposal is not None and names == _names(proposal.columns) and proposal.since <= now
    return proposal if is_same else recommended


def _names(columns: str) -> frozenset[str]:
    try:
        return frozenset(name.lower() for name, _ in split_names(columns))
    except ValueError:
        return frozenset()


@dataclass(frozen=True)
class ChoiceState:
    """What is stored about the choice of a table.

    Attributes:
        reads: number of recorded reads with filters at the last look.
        measured_at: when candidates were last measured, epoch milliseconds; None for never.
        proposal: the proposal in force.
        chosen: the columns that were set last.
    """

    reads: int = 0
    measured_at: int | None = None
    proposal: Proposal | None = None
    chosen: Chosen | None = None

    def put(self, table: ManagedTable) -> None:
        """Stores it, in place of what is stored."""
        fields: dict[str, object] = {"reads": self.reads, "measured_at": self.measured_at}
        if self.proposal is not None:
            fields |= {"proposal": self.proposal.columns, "proposed_at": self.proposal.since}
            fields |= {"proposed_from": self.proposal.reads}
            fields |= {"share_before": self.proposal.before, "share_after": self.proposal.after}
        if self.chosen is not None:
            fields |= {"chosen": self.chosen.columns, "chosen_at": self.chosen.since}
        table.write_state(STATE_FILE, json.dumps(fields))


def choice_state(table: ManagedTable) -> ChoiceState:
    """Returns what is stored about the choice of a table; nothing if the file is missing or cannot be read.

    Args:
        table: the table.
    """
    state = read(table, STATE_FILE, _parsed, _ADVICE)
    return ChoiceState() if isinstance(state, (Missing, Unreadable)) else state


def _parsed(text: str) -> ChoiceState | Unreadable:
    return parse(text, _state_of)


def _state_of(fields: Fields) -> ChoiceState:
    proposal = chosen = None
    columns, since = fields.text_or_none("proposal"), fields.whole_or_none("proposed_at")
    if columns and since is not None:
        before, after = fields.share_or_none("share_before"), fields.share_or_none("share_after")
        if before is None or after is None:
            raise FieldError("'share_before' or 'share_after' is no share")
        proposal = Proposal(columns, since, fields.whole_number("proposed_from"), before, after)
    columns, since = fields.text_or_none("chosen"), fields.whole_or_none("chosen_at")
    if columns and since is not None:
        chosen = Chosen(columns, since)
    return ChoiceState(fields.whole_number("reads"), fields.whole_or_none("measured_at"), proposal, chosen)


def choice_note(table: ManagedTable, snapshot: TableSnapshot) -> str | None:
    """Returns a note about the choice of the index columns of a table; None if its owner names them, or wants none.

    Args:
        table: the table.
        snapshot: its version.
    """
    if AUTO_PERIOD_KEY not in snapshot.settings:
        return None
    return note_of(snapshot.settings, choice_state(table), snapshot.state.clustering_columns())


def note_of(settings: Mapping[str, str], state: ChoiceState, clustering: Sequence[str] = ()) -> str:
    """Returns the note about a choice that is left to the service. This function is pure.

    Args:
        settings: properties in force.
        state: what is stored about the choice.
        clustering: columns by which Delta clusters the table.
    """
    columns, proposal = settings.get(COLUMNS_KEY), state.proposal
    if clustering:
        return f"no index columns are chosen, because Delta's OPTIMIZE clusters by {', '.join(clustering)}"
    if not records_scans(settings):
        return f"{COLUMNS_KEY} = 'auto' needs recorded reads: set {CONSUMPTION_ENABLED.name} to true"
    if proposal is not None:
        due = moment(min(proposal.since + PROPOSAL_MILLIS, LAST_MILLIS))
        return (
            f"the service proposes the index columns {proposal.columns} from {proposal.reads:,} recorded reads, which "
            f"would read about {share_text(proposal.after)} of the bytes in place of {share_text(proposal.before)}; "
            f"the service sets them after {due.isoformat(timespec='seconds') if due else 'a day'}"
        )
    if columns is not None:
        return f"the service has chosen the index columns {columns} from recorded reads"
    if state.measured_at is None:
        needed = f"{LEAST_READS} recorded reads with filters over at least a day"
        return f"the service proposes index columns after {needed}; there are {state.reads} so far"
    return f"no index columns pay for the {state.reads:,} recorded reads"
