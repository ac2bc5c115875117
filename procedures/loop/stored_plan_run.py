"""Executes groups of a stored plan beside other processes: claims a group, checks its files, and records its end."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from pyspark.sql import functions as F

from catalog.clock import Clock
from catalog.counted_nouns import agreeing, counted
from catalog.errors import ConcurrentChangeError, UnknownNameError
from catalog.history.event_rows import committed_events
from catalog.jvm.java_errors import known_error
from catalog.jvm.session import described_jobs
from catalog.properties.checks import described
from catalog.state.plan_claims import DONE, FAILED, STALE, GroupClaims, GroupState
from catalog.state.plan_files import PlanGroups, StoredGroup, StoredPlan, find_plan
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot
from procedures.declare.runs import Run
from procedures.groups.group import Concatenate, Group, SkippedGroup
from procedures.groups.plan import Plan
from procedures.loop.interfaces import PlanRequest
from procedures.loop.optimize_settings import OptimizeSettings
from procedures.rewrite.group_rewrite import rewrite
from procedures.rewrite.results import RewriteContext, RewriteResult
from procedures.selection.stored_groups import group_of
from procedures.selection.table_plan import NAME

PLAN_GROUP_STALE, PLAN_GROUP_RUNNING, PLAN_GROUP_DONE = "PLAN_GROUP_STALE", "PLAN_GROUP_RUNNING", "PLAN_GROUP_DONE"


@dataclass
class StoredPlanRun:
    """One run over groups of a stored plan; see ``parts.Planner``.

    Attributes:
        table: the table.
        stored_plan: the plan.
        claims: of this run.
        waiting: numbers of the groups that are still to be looked at, in order.
        is_chosen: whether the caller has named the groups.
        is_dry_run: whether nothing is claimed.
    """

    table: ManagedTable
    stored_plan: StoredPlan
    claims: GroupClaims
    waiting: list[int]
    is_chosen: bool
    is_dry_run: bool
    _groups: PlanGroups = field(init=False)
    _taken_elsewhere: list[int] = field(default_factory=list)
    _committed: CommittedGroups = field(init=False)

    def __post_init__(self) -> None:
        """Reads no group yet."""
        self._groups = PlanGroups(self.table, self.stored_plan)
        self._committed = CommittedGroups(self.table, self.stored_plan)

    @classmethod
    def of(cls, table: ManagedTable, settings: OptimizeSettings, run: Run, clock: Clock) -> StoredPlanRun:
        """Finds the plan that the settings name.

        Raises:
            InvalidArgumentError: a plan of another table.
            UnknownNameError: there is no such plan, or it has no such group.
            PlanUnreadableError: the plan cannot be read.
        """
        plan = find_plan(table, settings.plan or "", table.snapshot().table_id)
        for group_id in settings.groups or ():
            if group_id > plan.groups:
                raise UnknownNameError.of("plan group", str(group_id), [f"1 to {plan.groups}"] if plan.groups else [])
        waiting = list(range(1, plan.groups + 1)) if settings.groups is None else list(settings.groups)
        claims = GroupClaims(table, plan, run.run_id, run.trigger, clock)
        return cls(table, plan, claims, waiting, settings.groups is not None, settings.dry_run)

    def plan(self, request: PlanRequest) -> Plan:
        """See ``Planner.plan``."""
        with described_jobs(self.table.spark, f"USE optimize: groups of plan {self.stored_plan.plan_id}"):
            return self._plan(request)

    def _plan(self, request: PlanRequest) -> Plan:
        """Takes the next groups that nobody has."""
        snapshot = self.table.snapshot()
        if not self.is_chosen:
            self.claims.list_claimed()
        most = self.stored_plan.groups if self.is_dry_run else request.most_groups
        groups: list[Group] = []
        skipped: list[SkippedGroup] = []
        size = 0
        while len(groups) < most and (request.most_bytes is None or not groups or size < request.most_bytes):
            group_id = self._next(skipped)
            if group_id is None:
                break
            stored = self._groups[group_id]
            group = group_of(snapshot, stored, self.stored_plan.max_file_bytes)
            if isinstance(group, str):
                skipped += self._passed_over(snapshot, stored, group)
                continue
            groups.append(self._named(group))
            size += group.bytes
        notes = () if groups else (f"plan {self.stored_plan.plan_id}: no group is left to rewrite",)
        warnings = tuple(described(snapshot.property_errors))
        return Plan(snapshot.version, tuple(groups), tuple(skipped), notes, warnings, None, snapshot.committed_at)

    def _named(self, group: Concatenate) -> Concatenate:
        """The group as reports show it: with its number in its reason, and the plan in its note."""
        assert group.expected is not None
        count = len(group.files)
        become = f"{counted(count, 'file')} {agreeing(count, 'becomes', 'become')} {group.expected.files}"
        note = f"group {group.plan_group} of plan {self.stored_plan.plan_id}: {become}"
        return replace(group, reason=f"PLAN_GROUP_{group.plan_group}_{group.reason}", note=note)

    def rewrite(self, group: Group, context: RewriteContext) -> RewriteResult:
        """Rewrites a claimed group and records how it has ended.

        Args:
            group: what ``plan`` has returned.
            context: see ``group_rewrite.rewrite``.
        """
        assert isinstance(group, Concatenate)
        assert group.plan_group is not None
        number = group.plan_group
        try:
            parameters = {**context.parameters, "plan": self.stored_plan.plan_id, "group": str(number)}
            result = rewrite(self.table, group, replace(context, parameters=parameters))
        except ConcurrentChangeError:
            # Looked at again: if its files are gone, the group is done or stale.
            self.claims.release(number)
            self.waiting.insert(0, number)
            raise
        except BaseException as error:
            self.claims.finish(number, FAILED, reason=str(known_error(error)))
            raise
        self.claims.finish(number, DONE, result.version)
        return result

    # --------------------------------------------------------------------------------------------------------- claims

    def _next(self, skipped: list[SkippedGroup]) -> int | None:
        """Claims the next group; None when none is left."""
        while self.waiting:
            group_id = self.waiting.pop(0)
            state = self.claims.state(group_id) if self.is_dry_run else self.claims.take(group_id, self.is_chosen)
            if state is None or (self.is_dry_run and state.state == FAILED):
                return group_id
            if state.state in (DONE, STALE):
                skipped += [self._skipped(group_id, state)] if self.is_chosen or state.state == STALE else []
            else:
                self._taken_elsewhere.append(group_id)
        # The claim of a process that was killed may have expired meanwhile.
        for group_id in self._taken_elsewhere:
            state = self.claims.state(group_id) if self.is_dry_run else self.claims.take(group_id, self.is_chosen)
            if state is None:
                self._taken_elsewhere.remove(group_id)
                return group_id
            if state.state != DONE or self.is_chosen:
                skipped.append(self._skipped(group_id, state))
        self._taken_elsewhere = []
        return None

    def _skipped(self, group_id: int, state: GroupState) -> SkippedGroup:
        stored = self._groups[group_id]
        if state.state == DONE:
            reason, note = PLAN_GROUP_DONE, f"{state.holder} has rewritten it in version {state.version}"
        elif state.state == STALE:
            reason, note = PLAN_GROUP_STALE, state.reason or "its files have changed"
        else:
            reason, note = PLAN_GROUP_RUNNING, f"{state.holder} rewrites it in run {state.run_id}"
        return self._skip(stored, reason, note)

    def _skip(self, stored: StoredGroup, reason: str, note: str) -> SkippedGroup:
        text = f"group {stored.group_id} of plan {self.stored_plan.plan_id}: {note}"
        return SkippedGroup(NAME, reason, len(stored.paths), stored.bytes, text)

    def _passed_over(self, snapshot: TableSnapshot, stored: StoredGroup, problem: str) -> list[SkippedGroup]:
        """Records why a group does not fit the table any more: a killed process has done it, or it is stale."""
        version = self._committed.version_of(stored.group_id, snapshot.version)
        if version is not None:
            self.claims.finish(stored.group_id, DONE, version)
            note = f"it was rewritten in version {version}"
            return [self._skip(stored, PLAN_GROUP_DONE, note)] if self.is_chosen else []
        self.claims.finish(stored.group_id, STALE, reason=problem)
        return [self._skip(stored, PLAN_GROUP_STALE, problem)]


class CommittedGroups:
    """The commits of a plan's groups. Reads each part of the history once.

    Args:
        table: the table.
        plan: the plan.
    """

    def __init__(self, table: ManagedTable, plan: StoredPlan) -> None:
        self._table = table
        self._plan_id = plan.plan_id
        self._read_to = plan.version
        self._versions: dict[str, int] = {}

    def version_of(self, group_id: int, newest: int) -> int | None:
        """Returns the version in which a group was committed; None if the log does not have it.

        Args:
            group_id: the group.
            newest: version up to which the history counts.
        """
        if newest > self._read_to:
            self._read(newest - self._read_to)
        return self._versions.get(str(group_id))

    def _read(self, commits: int) -> None:
        # Commits that arrive now shift the window of the newest commits, so that it may begin too late.
        history = self._table.history(commits)
        versions = [row.version for row in history.select("version").collect()]
        if min(versions) > self._read_to + 1 and len(versions) == commits:
            # Twice as many: beside a writer without a pause, an exact number would come too late each time.
            self._read(2 * (max(versions) - self._read_to))
            return
        parameters = F.col("parameters")
        rows = (
            committed_events(history)
            .where(parameters["plan"] == self._plan_id)
            .select("version", parameters["group"].alias("group"))
            .collect()
        )
        # The history begins with the newest commit, which counts.
        self._versions |= {row.group: row.version for row in reversed(rows) if row.group is not None}
        self._read_to = max(versions)
