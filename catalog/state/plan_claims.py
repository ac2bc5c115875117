"""Which process works on which group of a stored plan: one small file per group, created by the run that claims it.

A claim prevents two processes from doing the same work; correctness never depends on it. A rewrite commits only if the
files of its group are unchanged.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from catalog.clock import Clock
from catalog.epoch_millis import LAST_MILLIS
from catalog.jvm.java_errors import causes_of, is_cancellation
from catalog.state.lease import LEASE_MILLIS, MOST_LEASE_TIMES, this_process
from catalog.state.plan_files import StoredPlan
from catalog.state.renewal import renewed_in_background
from catalog.state.state_files import FieldError, Fields, Missing, Unreadable, access_problem, parse, read
from catalog.table.managed_table import ManagedTable

logger = logging.getLogger(__name__)

PLANNED, RUNNING, DONE, STALE, FAILED = "planned", "running", "done", "stale", "failed"
_STATES = (RUNNING, DONE, STALE, FAILED)
_ADVICE = "The group counts as planned; delete the file if the warning comes back."
_TAKEOVER_ADVICE = "Two runs may do the same work; delete the file if the warning comes back."


@dataclass(frozen=True)
class GroupState:
    """The state of a group.

    Attributes:
        state: ``running``, ``done``, ``stale`` or ``failed``.
        run_id: the run that has or had it.
        holder: host and process of the run.
        trigger: what started the run.
        claimed_at: epoch milliseconds.
        expires_at: epoch milliseconds; afterwards any run may take a running group.
        finished_at: epoch milliseconds, None while it runs.
        version: version committed, None unless it is done.
        reason: why it is stale or failed.
    """

    state: str
    run_id: str
    holder: str
    trigger: str
    claimed_at: int
    expires_at: int
    finished_at: int | None = None
    version: int | None = None
    reason: str | None = None

    def is_running(self, now: int) -> bool:
        """Whether its claim has not expired."""
        return self.state == RUNNING and self.expires_at > now

    def to_json(self) -> str:
        """The text of its file."""
        return json.dumps(asdict(self), separators=(",", ":"))


def parse_state(text: str, now: int | None = None) -> GroupState | Unreadable:
    """The state in a file's text, or why there is none; total.

    Args:
        text: the text.
        now: epoch milliseconds; a claim that ends much later is none, as for leases.
    """
    latest = LAST_MILLIS if now is None else now + MOST_LEASE_TIMES * LEASE_MILLIS

    def build(values: Fields) -> GroupState:
        state = values.text("state")
        if state not in _STATES:
            raise FieldError(f"'state' is '{state}', expected one of {', '.join(_STATES)}")
        return GroupState(
            state=state,
            run_id=values.text("run_id"),
            holder=values.text("holder"),
            trigger=values.text("trigger"),
            claimed_at=values.whole_number("claimed_at"),
            expires_at=values.whole_number("expires_at", most=latest if state == RUNNING else LAST_MILLIS),
            finished_at=values.whole_or_none("finished_at"),
            version=values.whole_or_none("version"),
            reason=values.text_or_none("reason"),
        )

    return parse(text, build)


def state_file(plan: StoredPlan, group_id: int) -> str:
    """The file of a group, relative to the state folder."""
    return f"{plan.folder}/groups/{group_id}.json"


def takeover_file(plan: StoredPlan, group_id: int) -> str:
    """The file of the run that is about to overwrite a group's file, relative to the state folder."""
    return f"{plan.folder}/groups/{group_id}-takeover.json"


def read_claim(
    table: ManagedTable, plan: StoredPlan, group_id: int, now: int | None = None
) -> GroupState | Unreadable | Missing:
    """Returns the content of a group's file; see ``parse_state`` for ``now``."""
    return read(table, state_file(plan, group_id), partial(parse_state, now=now), _ADVICE)


def read_group_state(table: ManagedTable, plan: StoredPlan, group_id: int, now: int | None = None) -> GroupState | None:
    """Returns the state of a group; None if no run has claimed it, or its file cannot be read."""
    state = read_claim(table, plan, group_id, now)
    return None if isinstance(state, (Missing, Unreadable)) else state


def read_group_states(table: ManagedTable, plan: StoredPlan, now: int | None = None) -> dict[int, GroupState]:
    """Returns the states of the groups that a run has claimed, by number."""
    states = {number: read_group_state(table, plan, number, now) for number in claimed_groups(table, plan)}
    return {number: state for number, state in states.items() if state is not None}


def claimed_groups(table: ManagedTable, plan: StoredPlan) -> list[int]:
    """Returns the numbers of the groups that a run has claimed."""
    names = (name.removesuffix(".json") for name in table.list_state(f"{plan.folder}/groups"))
    return [int(name) for name in names if name.isascii() and name.isdigit()]


def last_work(state: GroupState) -> int:
    """Returns when a run last worked on a group, epoch milliseconds; the end of its claim while it runs."""
    return max(state.claimed_at, state.finished_at or state.expires_at)


class GroupClaims:
    """The claims of one run on groups of a plan.

    Args:
        table: the table.
        plan: the plan.
        run_id: the run.
        trigger: what started the run.
        clock: the time.
    """

    def __init__(self, table: ManagedTable, plan: StoredPlan, run_id: str, trigger: str, clock: Clock) -> None:
        self._table, self._plan, self._clock = table, plan, clock
        self._run_id, self._trigger = run_id, trigger
        self._mine: dict[int, GroupState] = {}
        # Groups that have a file, as listed once; None = not listed.
        self._claimed: frozenset[int] | None = None
        # The thread that renews claims must not overwrite the state of a group that has just ended.
        self._lock = threading.Lock()

    def list_claimed(self) -> None:
        """Lists the groups that have a file, once, so that other groups need no requests; for runs of many groups."""
        if self._claimed is None:
            self._claimed = frozenset(claimed_groups(self._table, self._plan))

    def state(self, group_id: int) -> GroupState | None:
        """Returns the state of a group; None if it had no file when the groups were listed."""
        if self._claimed is not None and group_id not in self._claimed:
            return None
        return read_group_state(self._table, self._plan, group_id, self._clock.now())

    def take(self, group_id: int, again: bool = False) -> GroupState | None:
        """Claims a group.

        Args:
            group_id: the group.
            again: also a stale one.

        Returns:
            None if it is claimed; otherwise why not: it is done or stale, or another run has it. A claim that the file
            system refuses is logged and counts: other runs cannot see it, and two may do the same work.
        """
        now = self._clock.now()
        mine = GroupState(RUNNING, self._run_id, this_process(), self._trigger, now, now + LEASE_MILLIS)
        with self._lock:
            if self._claimed is not None and group_id in self._claimed:
                # Without an attempt to create the file, which would fail.
                other = self._conflicting_claim(group_id, now, again)
                if other is not None:
                    return other
            if not self._create(self._file(group_id), mine):
                other = self._conflicting_claim(group_id, now, again) or self._take_over(group_id, mine, again)
                if other is not None:
                    return other
            # Of two runs that took it over because a takeover file could not be used, the last one has the group.
            other = self._conflicting_claim(group_id, now, again)
            if other is None:
                self._mine[group_id] = mine
            return other

    def _take_over(self, group_id: int, mine: GroupState, again: bool) -> GroupState | None:
        """Claims a group whose run has failed or was killed; returns the run that has it or takes it over instead."""
        # Only one run at a time: otherwise one could overwrite the claim of another one that has just read it back.
        file, now = takeover_file(self._plan, group_id), mine.claimed_at
        if not self._create(file, mine):
            other = read(self._table, file, partial(parse_state, now=now), _TAKEOVER_ADVICE)
            if isinstance(other, GroupState) and other.run_id != self._run_id and other.is_running(now):
                return other
        try:
            # A file that was deleted since the first attempt must not be overwritten: a third run may have created it
            # anew.
            if self._create(self._file(group_id), mine):
                return None
            conflicting = self._conflicting_claim(group_id, now, again)
            if conflicting is None:
                self._store(group_id, mine)
            return conflicting
        finally:
            self._delete(file)

    def _conflicting_claim(self, group_id: int, now: int, again: bool) -> GroupState | None:
        state = read_group_state(self._table, self._plan, group_id, now)
        if state is None or state.run_id == self._run_id:
            return None
        is_over = state.state == DONE or (state.state == STALE and not again)
        return state if is_over or state.is_running(now) else None

    def finish(self, group_id: int, state: str, version: int | None = None, reason: str | None = None) -> None:
        """Records how a claimed group has ended; a file system that refuses is logged.

        Args:
            group_id: the group.
            state: ``done``, ``stale`` or ``failed``.
            version: version committed.
            reason: why it is stale or failed.
        """
        with self._lock:
            mine = self._mine.pop(group_id, None)
            if mine is None:
                return
            # If it cannot be stored, the next process that reads the group's state looks it up in the log.
            self._store(
                group_id,
                replace(mine, state=state, finished_at=self._clock.now(), version=version, reason=reason),
            )

    def release(self, group_id: int) -> None:
        """Gives a claimed group back; a file system that refuses is logged, and the claim expires."""
        with self._lock:
            if self._mine.pop(group_id, None) is None:
                return
            state = read_group_state(self._table, self._plan, group_id)
            if state is None or state.run_id != self._run_id or state.state != RUNNING:
                return
            self._delete(self._file(group_id))

    def _create(self, file: str, state: GroupState) -> bool:
        try:
            return self._table.create_state(file, state.to_json())
        except (Py4JError, PySparkException, OSError) as error:
            if is_cancellation(causes_of(error)):
                raise
            # The caller then reads the existing file; writing to it shows the error again.
            return False

    def _store(self, group_id: int, state: GroupState) -> None:
        try:
            self._table.write_state(self._file(group_id), state.to_json())
        except (Py4JError, PySparkException, OSError) as error:
            logger.warning("%s was not stored: %s", self._file(group_id), access_problem(error))

    def _delete(self, file: str) -> None:
        try:
            self._table.delete_state(file)
        except (Py4JError, PySparkException, OSError) as error:
            logger.warning("%s was not deleted: %s", file, access_problem(error))

    @contextmanager
    def renewed(self) -> Iterator[None]:
        """Renews the claims in the background while the block runs, and gives back those that are left."""

        def renew() -> None:
            with self._lock:
                now = self._clock.now()
                for group_id, mine in list(self._mine.items()):
                    # Another run has the group if this process was suspended for longer than a lease time.
                    if self._conflicting_claim(group_id, now, again=True) is None:
                        self._mine[group_id] = replace(mine, expires_at=now + LEASE_MILLIS)
                        self._store(group_id, self._mine[group_id])

        def end() -> None:
            for group_id in list(self._mine):
                self.release(group_id)

        def warn(problem: Unreadable) -> None:
            logger.warning("Claims of plan %s cannot be written: %s", self._plan.plan_id, problem)

        with renewed_in_background(f"use-plan-{self._run_id}", self._clock, LEASE_MILLIS / 3000, renew, end, warn):
            yield

    def _file(self, group_id: int) -> str:
        return state_file(self._plan, group_id)
