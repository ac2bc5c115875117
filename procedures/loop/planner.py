"""Plans the iterations of a run: asks the strategies in order, and takes groups of the first that finds any."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from catalog.errors import ConcurrentChangeError, IndexConfigurationError, InvalidArgumentError, UnknownNameError
from catalog.insights.recorded_scans import RecordedScans, recorded_scans
from catalog.jvm.session import described_jobs
from catalog.properties.checks import described
from catalog.properties.insight_properties import records_scans
from catalog.pruning.file_conditions import files_that_may_match
from catalog.table.managed_table import ManagedTable
from catalog.table.named_files import find_files
from catalog.table.snapshot import TableSnapshot
from procedures.groups.group import Concatenate, Group, Relayout, SkippedGroup
from procedures.groups.plan import Plan
from procedures.groups.strategy import Finding, RunSoFar, Strategy, TableFiles
from procedures.loop.interfaces import PlanRequest
from procedures.loop.optimize_settings import OptimizeSettings
from procedures.loop.quiet_period import QuietPeriod
from procedures.selection.revision_rewrite import former_index_note
from procedures.selection.unindexed_files import NAME as UNINDEXED_FILES

SnapshotCheck = Callable[[TableSnapshot], None]
"""Raises if a run must not go on in a version."""


def any_snapshot(_: TableSnapshot) -> None:
    """See ``SnapshotCheck``."""


class TablePlanner:
    """Plans with the strategies of one run; see ``interfaces.Planner``.

    What a strategy finds in one version is used for several iterations as long as its groups are concatenated: they
    change nothing that it looks at. Rows that are laid out anew change the tree, so that it looks again, unless it says
    that its findings last.

    Args:
        table: the table.
        settings: what the run was asked to do.
        quiet: which files are left alone; none when left out.
        check: is called with each version that is planned on, and raises if the run must not go on.
    """

    def __init__(
        self,
        table: ManagedTable,
        settings: OptimizeSettings,
        quiet: QuietPeriod | None = None,
        check: SnapshotCheck = any_snapshot,
    ) -> None:
        self._table = table
        self._settings = settings
        self.quiet = quiet
        self._check = check
        # Of the first version.
        self._table_id: str | None = None
        self._named_paths: tuple[str, ...] | None = None
        # What each strategy could choose from when it was asked first.
        self._first: dict[str, TableFiles] = {}
        # What the last strategy that had groups finds further, if that is still good.
        self._findings: tuple[Strategy, Iterator[Finding]] | None = None

    def plan(self, request: PlanRequest) -> Plan:
        """See ``Planner.plan``; reads metadata only.

        Raises:
            IndexConfigurationError: a strategy needs index columns and the table has none.
            UnknownNameError: the table has no revision of the number that is asked for, or ``files`` names one that the
                table did not have when the run began, or ``where`` a column that it does not have.
            InvalidArgumentError: ``where`` is no condition over the table's columns, or a strategy yields something
                that is neither a group nor a sentence.
            ConcurrentChangeError: the table was replaced since the first plan, or the check refuses the version.
        """
        table, settings = self._table, self._settings
        snapshot = table.snapshot()
        self._table_id = self._table_id or snapshot.table_id
        if snapshot.table_id != self._table_id:
            raise ConcurrentChangeError(f"{table.name} was replaced by another table during the run, which ends.")
        self._check(snapshot)
        _check_index(table, snapshot, settings)
        _check_revisions(snapshot, settings)
        with described_jobs(table.spark, f"USE optimize: planning {table.name}"):
            restricted, active, changed = self._restricted(snapshot), frozenset[str](), None
            if self.quiet is not None and (active := self.quiet.active_paths(snapshot)):
                changed = self.quiet.skipped(restricted.file_table, active)
                restricted = restricted.without(sorted(active))
            plan = _PlanInMaking(snapshot, request, settings, active, changed)
            is_contended = request.batch_bytes is not None
            going_on, self._findings = None if is_contended else self._findings, None
            scans = partial(_scans_since, table, snapshot.settings)
            for strategy in settings.strategies:
                if strategy.name in request.left_out:
                    continue
                plan.strategy = strategy.name
                if going_on is not None and going_on[0] is strategy and plan.takes(going_on[1]):
                    self._findings = going_on
                    break
                first, failed = self._first.get(strategy.name), request.failed.get(strategy.name, frozenset())
                table_files = TableFiles(restricted, RunSoFar(first, failed, is_contended), scans)
                self._first.setdefault(strategy.name, table_files)
                asked = settings.selection[strategy.name].with_batch_limit(request.batch_bytes)
                findings = strategy.groups(table_files, asked)
                if plan.takes(findings):
                    are_good = strategy.findings_last or all(isinstance(g, Concatenate) for g in plan.groups)
                    self._findings = (strategy, findings) if are_good else None
                    break
            else:
                former = former_index_note(snapshot)
                plan.notes += [former] if former else []
        return plan.made()

    def _restricted(self, snapshot: TableSnapshot) -> TableSnapshot:
        """The snapshot with the files that may be chosen."""
        files, where = self._settings.files, self._settings.where
        if files is not None:
            if self._named_paths is None:  # Later snapshots no longer have the files that this run has rewritten.
                self._named_paths = find_files(snapshot, files)
            snapshot = snapshot.only_paths(self._named_paths)
        if where is not None:
            spark, schema = snapshot.spark, snapshot.schema
            where.check(spark, schema)
            snapshot = snapshot.only(files_that_may_match(spark, schema, snapshot.partition_columns, where))
        return snapshot


def _scans_since(table: ManagedTable, configuration: Mapping[str, str], since: int) -> RecordedScans | None:
    """See ``TableFiles.scans``; most strategies do not ask."""
    return recorded_scans(table, since) if records_scans(configuration) else None


class _PlanInMaking:
    """What a plan has so far, and how many groups it still takes."""

    def __init__(
        self,
        snapshot: TableSnapshot,
        request: PlanRequest,
        settings: OptimizeSettings,
        active: frozenset[str],
        changed: SkippedGroup | None,
    ) -> None:
        self._snapshot = snapshot
        self._request = request
        self._active = active
        self._changed = changed
        # Beside the first indexing, another group would make a revision of its own.
        is_first = snapshot.latest_revision is None and any(s.needs_index_columns for s in settings.strategies)
        self._most_groups = 1 if is_first else request.most_groups
        self._skipped: list[SkippedGroup] = []
        self._arrived: SkippedGroup | None = None
        self.strategy = ""
        self.groups: list[Group] = []
        self.notes: list[str] = []

    def takes(self, findings: Iterator[Finding]) -> bool:
        """Takes as many groups as are wanted of what a strategy finds; says whether there was any."""
        notes = []
        while not self._is_full():
            finding = next(findings, None)
            if finding is None:
                break
            if isinstance(finding, str):
                notes.append(finding)
            elif isinstance(finding, SkippedGroup):
                self._skipped += [finding] if finding not in self._skipped else []
            elif not isinstance(finding, Relayout | Concatenate):
                accepted = "groups(self, table, settings) that yields Relayout, Concatenate, SkippedGroup or str"
                raise InvalidArgumentError.of("strategy", repr(finding), accepted)
            elif self._is_left(finding):
                break
            elif not self._active.isdisjoint(file.path for file in finding.files):
                continue  # found before the statements
            else:
                self.groups.append(finding)
        self.notes += [] if self.groups else notes
        return bool(self.groups)

    def made(self) -> Plan:
        """The plan."""
        snapshot = self._snapshot
        warnings = tuple(described(snapshot.property_errors))
        notes = () if self.groups else tuple(self.notes)
        groups, skipped = tuple(self.groups), tuple(self._skipped)
        return Plan(
            snapshot.version,
            groups,
            skipped,
            notes,
            warnings,
            self._arrived,
            snapshot.committed_at,
            self._changed,
            self.strategy,
        )

    def _is_full(self) -> bool:
        most_bytes = self._request.most_bytes
        is_large = most_bytes is not None and sum(group.bytes for group in self.groups) >= most_bytes
        return len(self.groups) >= self._most_groups or (bool(self.groups) and is_large)

    def _is_left(self, group: Group) -> bool:
        arrivals = self._request.arrivals
        if arrivals is None or group.strategy != UNINDEXED_FILES:
            return False
        self._arrived = arrivals.left(group)
        return self._arrived is not None


def _check_index(table: ManagedTable, snapshot: TableSnapshot, settings: OptimizeSettings) -> None:
    configuration = snapshot.index_configuration
    needing = [s.name for s in settings.strategies if s.needs_index_columns]
    if configuration is None and needing:
        raise IndexConfigurationError.no_columns(table.name, needing[0], snapshot.property_errors)


def _check_revisions(snapshot: TableSnapshot, settings: OptimizeSettings) -> None:
    """Refuses an unknown revision before a strategy that needs none, such as UnindexedFiles, changes the table."""
    known = {number for number in snapshot.revisions if number > 0}
    if not known and UNINDEXED_FILES in settings.selection:
        known = {1}  # the one that the first indexing makes
    for number in {asked.revision_id for asked in settings.selection.values() if asked.revision_id}:
        if number not in known:
            raise UnknownNameError.of("revision", str(number), [str(n) for n in known], "revision_id")
