"""The loop of ``optimize``: plans and rewrites groups of files until no strategy chooses any, or a limit is reached."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from catalog.counted_nouns import agreeing, counted
from catalog.errors import ConcurrentChangeError, UseError
from catalog.jvm.java_errors import known_error
from catalog.state.fleet_ledger import TOO_LARGE
from catalog.state.lease import HeldBy, Lease
from procedures.declare.runs import Run, Stop
from procedures.groups.group import Group, SkippedGroup
from procedures.groups.plan import Arrivals, Plan
from procedures.loop.group_runs import CommittedGroup, run_groups, stopped_by_keyboard
from procedures.loop.interfaces import OptimizerParts, PlanRequest, ProgressDisplay
from procedures.loop.report import (
    LEASE_HELD,
    OptimizeRow,
    committed_row,
    failed_row,
    nothing_row,
    planned_row,
    skipped_row,
    with_warnings,
)
from procedures.rewrite.results import RewriteResult

logger = logging.getLogger(__name__)

# On a table under constant change, a run ends after this many iterations in a row without a commit.
MAX_CONFLICTS_IN_A_ROW = 5
# Rows that a run has written so many times are not written again: strategies might undo each other's work.
MAX_REWRITES_IN_A_RUN = 12
# A run ends after so many plans in a row for files of its own that found reads no cheaper than an earlier plan had.
MAX_PLANS_IN_VAIN = 3


@dataclass(frozen=True)
class Limits:
    """When a run ends although files are left; None = no limit.

    Attributes:
        groups: groups committed at most.
        bytes: once this many input bytes were rewritten, no further group starts.
        seconds: once this time is over, no further group starts.
        parallelism: groups rewritten at the same time.
    """

    groups: int | None = None
    bytes: int | None = None
    seconds: float | None = None
    parallelism: int = 1

    def reached(self, run: Run, now: int) -> Stop | None:
        """The limit that a run has reached, None when it may go on.

        Args:
            run: the run.
            now: epoch milliseconds.
        """
        if self.groups is not None and run.committed >= self.groups:
            return Stop("LIMIT_REACHED", f"max_iterations = {self.groups} was reached; more may remain")
        if self.bytes is not None and run.committed_bytes >= self.bytes:
            note = f"max_bytes = {self.bytes} was reached after {run.committed_bytes} bytes; more may remain"
            return Stop("LIMIT_REACHED", note)
        if self.seconds is not None and (now - run.started_at) / 1000 >= self.seconds:
            return Stop("LIMIT_REACHED", f"max_duration = {self.seconds:g} seconds was reached; more may remain")
        return None

    def next_groups(self, run: Run) -> int:
        """Groups that the next iteration may have."""
        left = self.parallelism if self.groups is None else self.groups - run.committed
        return max(1, min(self.parallelism, left))

    def next_bytes(self, run: Run) -> int | None:
        """Bytes after which the next iteration takes no further group, None without a limit."""
        return None if self.bytes is None else self.bytes - run.committed_bytes


class Optimizer:
    """One run of the loop; to be used once.

    Args:
        parts: the surroundings.
        run: its identity and its state, and the way to stop it.
        limits: when it ends although files are left.
        dry_run: plan only.
    """

    def __init__(self, parts: OptimizerParts, run: Run, limits: Limits, dry_run: bool = False) -> None:
        self._parts = parts
        self._run = run
        self._limits = limits
        self._dry_run = dry_run
        self._report: list[OptimizeRow] = []
        self._warnings: tuple[str, ...] = ()
        self._iteration = 0
        self._conflicts = 0
        # Skipped groups that the report shows: every plan names them again.
        self._skipped: set[SkippedGroup] = set()
        # Strategy and paths of the output of the last iteration.
        self._last_written: tuple[str, frozenset[str]] = ("", frozenset())
        # How many times this run has written the rows of a file, by the file's path.
        self._rewrites: dict[str, int] = {}
        # What reads cost at best when a plan was made, and how many plans for files of the run found no less since.
        self._least_cost = math.inf
        self._in_vain = 0
        # Commit time of the version at which the run began. Files that are younger have arrived during the run. None
        # until the next plan, and after a conflict: a delete or an update writes the rows of a lost group to new files.
        self._arrived_since: int | None = None
        # Bytes of unindexed files that were rewritten, and those that the last plan leaves to the next run.
        self._indexed_bytes = 0
        self._arrived: SkippedGroup | None = None
        # Files that the last plan leaves alone because of recent statements.
        self._changed: SkippedGroup | None = None
        self._planned_version = -1
        # Where the report of the last plan ends, and that of what became of its groups begins.
        self._outcomes_at = 0
        # By strategy, the files of groups that failed by a conflict, as long as they are not rewritten.
        self._failed: dict[str, frozenset[str]] = {}
        self._left_out: frozenset[str] = frozenset()
        # Bytes of a batch at most after a conflict, None after a commit.
        self._batch_bytes: int | None = None

    def optimize(self) -> list[OptimizeRow]:
        """Plans and rewrites group after group; each group is committed as soon as it is done.

        Ends when no strategy chooses files, a limit is reached, a stop is requested (between groups), another run
        holds the table's lease, or too many conflicts follow each other; the last row says which.

        Raises:
            UseError: the settings or the table do not allow it (before any rewrite), or a rewrite failed for another
                reason than a conflict; groups committed before stay committed.
        """
        self._parts.runs.begin(self._run)
        try:
            with ExitStack() as stack:
                stack.enter_context(stopped_by_keyboard(self._run))
                self._loop(stack)
            left = [skipped for skipped in (self._arrived, self._changed) if skipped is not None]
            # They belong to the last plan, and the last row says why a run ended early.
            self._report[self._outcomes_at : self._outcomes_at] = [
                skipped_row(self._iteration, skipped, self._planned_version) for skipped in left
            ]
            return with_warnings(self._report, self._warnings)
        finally:
            self._parts.runs.end(self._run)

    def _loop(self, stack: ExitStack) -> None:
        parts = self._parts
        progress: ProgressDisplay | None = None
        while True:
            stop = self._stop()
            if stop is not None and self._iteration:
                self._end_with(stop)
                return
            # Look before planning, which costs more; the lease is taken when there is something to rewrite.
            holder = None if self._dry_run or progress else parts.lease.holder()
            if holder is not None:
                self._end_held(holder)
                return
            try:
                plan = self._plan()
            except (PySparkException, Py4JError):
                # Cancelling a statement also cancels the Spark jobs that plan it.
                if not parts.interrupted():
                    raise
                self._end_with(_requested(self._run.interrupt()))
                return
            if not self._takes(plan):
                return
            if progress is None:
                parts.check_writable()
                acquired = parts.lease.acquire()
                if isinstance(acquired, HeldBy):
                    self._end_held(acquired.lease)
                    return
                stack.enter_context(parts.lease.renewed())
                parts.events.reconcile()
                progress = stack.enter_context(parts.progress())
            groups, refusal = self._affordable(plan.groups)
            if refusal is not None and not groups:
                if refusal.code == TOO_LARGE:
                    self._leave_out(plan, refusal)
                    continue
                self._end_with(refusal)
                return
            self._rewrite_groups(replace(plan, groups=groups), progress)
            if self._conflicts >= MAX_CONFLICTS_IN_A_ROW:
                return

    # ------------------------------------------------------------------------------------------------------ planning

    def _plan(self) -> Plan:
        run, limits = self._run, self._limits
        self._iteration += 1
        run.current = "planning"
        # A pass over files that arrived during the run is worth its cost if it indexes as much as all passes before it.
        # So a run under constant appends ends, after a number of passes that grows with the logarithm of its bytes.
        since = self._arrived_since
        arrivals = None if since is None else Arrivals(since, self._indexed_bytes)
        most = limits.next_groups(run), limits.next_bytes(run)
        request = PlanRequest(*most, self._batch_bytes, arrivals, dict(self._failed), self._left_out)
        plan = self._parts.planner.plan(request)
        self._warnings, self._planned_version = plan.warnings, plan.version
        self._arrived, self._changed = plan.arrived, plan.changed
        if since is None:
            self._arrived_since = plan.committed_at
        return plan

    def _takes(self, plan: Plan) -> bool:
        """Whether the groups of a plan are to be rewritten; reports what it skips, and why the run ends otherwise."""
        for skipped in plan.skipped:
            if skipped not in self._skipped:
                self._skipped.add(skipped)
                self._report.append(skipped_row(self._iteration, skipped, plan.version))
        if self._dry_run:
            self._report += [planned_row(self._iteration, group, plan.version) for group in plan.groups]
        if not plan.groups and not self._report:
            notes = "; ".join(plan.notes)
            self._report.append(nothing_row(self._iteration, "NOTHING_TO_DO", plan.version, notes))
        self._outcomes_at = len(self._report)
        if not plan.groups:
            return False
        if self._repeats(plan):
            note = f"{plan.groups[0].strategy} chose files that the run has written"
            self._report.append(nothing_row(self._iteration, "NO_PROGRESS", plan.version, note))
            return False
        return not self._dry_run

    def _repeats(self, plan: Plan) -> bool:
        """Whether the loop might never end.

        A strategy chooses exactly what it has just written, or rows were written so often that strategies seem to take
        turns at them, or merges make reads as expensive again as they were.
        """
        strategy, written = self._last_written
        chosen = {file.path for group in plan.groups for file in group.files}
        if plan.groups[0].strategy == strategy and chosen == written:
            return True
        if plan.groups[0].read_cost is not None:
            cost, _ = plan.groups[0].read_cost
            if cost < self._least_cost:
                self._least_cost, self._in_vain = cost, 0
            elif chosen <= self._rewrites.keys():
                # Files of others may have raised the cost.
                self._in_vain += 1
            if self._in_vain == MAX_PLANS_IN_VAIN:
                return True
        return max(self._rewrites.get(path, 0) for path in chosen) >= MAX_REWRITES_IN_A_RUN

    def _affordable(self, groups: Sequence[Group]) -> tuple[tuple[Group, ...], Stop | None]:
        """The groups that the budget pays for, and why it does not pay for all."""
        spend = self._parts.spend
        if spend is None:
            return tuple(groups), None
        paid, refusal = [], None
        for group in groups:
            refused = spend(group.bytes)
            if refused is None:
                paid.append(group)
            refusal = refusal or refused
        return tuple(paid), refusal

    def _leave_out(self, plan: Plan, refusal: Stop) -> None:
        """Goes on with the other strategies; the report says why this one has no turn, and that the run is not done."""
        self._left_out |= {plan.strategy}
        group = plan.groups[0]
        skipped = SkippedGroup(group.strategy, refusal.code, len(group.files), group.bytes, refusal.message)
        self._report.append(replace(skipped_row(self._iteration, skipped, self._planned_version), version=None))

    # ----------------------------------------------------------------------------------------------------- rewriting

    def _rewrite_groups(self, plan: Plan, progress: ProgressDisplay) -> None:
        """Rewrites the groups of a plan; counts each outcome once."""
        parts, run = self._parts, self._run
        run.current = "; ".join(group.note for group in plan.groups)
        logger.info("%s: run %s, iteration %d, %s", parts.table, run.run_id, self._iteration, run.current)
        progress.planned(sum(group.bytes for group in plan.groups), run.current)

        def rewrite(group: Group) -> RewriteResult:
            # Events are stored in this thread: the caller's may be interrupted, and then cannot write files.
            started_at = parts.clock.now()
            try:
                result = parts.rewrite(group)
                parts.events.committed(result)
                return result
            except BaseException as error:
                parts.events.failed(group, started_at, known_error(error))
                raise
            finally:
                progress.done(group.bytes)

        outcomes = run_groups(plan.groups, rewrite, run, parts.threads, parts.interrupted, parts.clock)
        failure: BaseException | None = None
        written: list[str] = []
        committed = False
        for outcome in outcomes:
            group, milliseconds = outcome.group, outcome.milliseconds
            paths, failed = frozenset(f.path for f in group.files), self._failed.get(plan.strategy, frozenset())
            if isinstance(outcome, CommittedGroup):
                committed = True
                self._failed[plan.strategy] = failed - paths
                run.committed += 1
                run.committed_bytes += group.bytes
                self._indexed_bytes += 0 if group.revision_id else group.bytes
                written += outcome.result.paths
                times = 1 + max((self._rewrites.pop(path, 0) for path in paths), default=0)
                self._rewrites |= dict.fromkeys(outcome.result.paths, times)
                self._report.append(committed_row(self._iteration, group, milliseconds, outcome.result))
            else:
                error = known_error(outcome.error)
                self._report.append(failed_row(self._iteration, group, milliseconds, error))
                self._arrived_since = None
                self._failed[plan.strategy] = failed | paths
                # After a conflict, the next iteration plans the files again.
                failure = failure if isinstance(error, ConcurrentChangeError) else outcome.error
        self._conflicts = 0 if committed else self._conflicts + 1
        # A smaller batch is read in a shorter time, in which fewer concurrent writes happen.
        self._batch_bytes = None if committed else max(1, min(group.bytes for group in plan.groups) // 2)
        self._last_written = plan.groups[0].strategy, frozenset(written)
        if isinstance(failure, UseError):
            groups = f"{counted(run.committed, 'group')} {agreeing(run.committed, 'was', 'were')}"
            failure.message += f" {groups} committed before." if run.committed else ""
        if failure is not None:
            raise failure

    # -------------------------------------------------------------------------------------------------------- ending

    def _stop(self) -> Stop | None:
        """Why no further group begins, None when one may."""
        if self._parts.interrupted():
            return _requested(self._run.interrupt())
        if self._run.stop_reason is not None:
            return _requested(self._run.stop_reason)
        return self._limits.reached(self._run, self._parts.clock.now())

    def _end_with(self, stop: Stop) -> None:
        self._report.append(nothing_row(self._iteration, stop.code, None, stop.message))

    def _end_held(self, held: Lease) -> None:
        seconds = max(held.expires_at - self._parts.clock.now(), 0) // 1000
        note = f"{held.holder} optimizes the table in run {held.run_id} ({held.trigger}); its lease ends in {seconds} s"
        self._report, self._outcomes_at = [nothing_row(0, LEASE_HELD, None, note)], 0


def _requested(stop: Stop) -> Stop:
    """A request to stop as the last row of the report shows it."""
    return Stop(stop.code, f"{stop.message}; the groups above are committed, more may remain")
