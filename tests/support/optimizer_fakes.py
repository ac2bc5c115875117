"""A table, a planner, a lease and the other parts of the optimizer's loop, without Spark and without files."""

import threading
from contextlib import contextmanager
from types import SimpleNamespace

from fake_clock import FakeClock

from catalog.errors import ConcurrentChangeError
from catalog.state.lease import Acquired, HeldBy, Lease
from procedures.declare.runs import Run, Runs
from procedures.groups.group import InputFile, Relayout
from procedures.groups.plan import Plan
from procedures.loop.interfaces import OptimizerParts
from procedures.loop.optimizer import Limits, Optimizer
from procedures.rewrite.results import RewriteResult

STRATEGY = "OldestFirst"


def input_file(path, size=10, time=0):
    return InputFile(path, "", size, size, -1, time, time)


def conflict(*_):
    raise ConcurrentChangeError("staged")


class FakeTable:
    """Unindexed files in the order of their age, and the planner, rewriter and recorder over them.

    Attributes:
        files: size by path.
        times: modification time by path; 0 where there is none.
        batch_bytes: a group takes files until it has this many bytes.
        skipped, notes, warnings: parts of every plan.
        requests: what the loop asked of the planner.
        planned: groups of all plans.
        rewritten: paths of each group, in the order in which the rewrites began.
        steps: calls of the loop, in their order.
        events: stored events: state, paths, and the code of the error.
        during_plan, during_rewrite: called in the middle; what they raise is raised there.
    """

    def __init__(self, clock, sizes):
        self.clock = clock
        self.storage_ahead = 0
        self.files = {f"f{number}": size for number, size in enumerate(sizes)}
        self.times = {}
        self.batch_bytes = 1
        self.skipped, self.notes, self.warnings = (), (), ()
        self.version = 7
        self.requests, self.planned, self.rewritten, self.steps, self.events = [], [], [], [], []
        self.during_plan = self.during_rewrite = lambda *_: None
        self._lock = threading.Lock()

    def plan(self, request):
        self.steps.append("plan")
        self.requests.append(request)
        self.during_plan(request)
        most = self.batch_bytes if request.batch_bytes is None else min(self.batch_bytes, request.batch_bytes)
        groups, arrived = [], None
        files = [input_file(path, size, self.times.get(path, 0)) for path, size in self.files.items()]
        while files and len(groups) < request.most_groups and STRATEGY not in request.left_out:
            taken = [files.pop(0)]
            while files and sum(f.size for f in taken) < most:
                taken.append(files.pop(0))
            group = Relayout(STRATEGY, 0, "UNINDEXED", tuple(taken), f"{len(taken)} files")
            arrived = request.arrivals.left(group) if request.arrivals is not None else None
            if arrived is not None:
                break
            groups.append(group)
            if request.most_bytes is not None and sum(group.bytes for group in groups) >= request.most_bytes:
                break
        self.planned += groups
        return Plan(
            self.version,
            tuple(groups),
            self.skipped,
            self.notes,
            self.warnings,
            arrived,
            self.storage_time,
            strategy=STRATEGY,
        )

    @property
    def storage_time(self):
        """The time by the clock of the storage, which need not be that of the optimizer."""
        return self.clock.now() + self.storage_ahead

    def append(self, path, size):
        """A plain writer appends a file now."""
        self.files[path], self.times[path] = size, self.storage_time

    def rewrite(self, group):
        paths = tuple(file.path for file in group.files)
        with self._lock:
            self.rewritten.append(paths)
        self.during_rewrite(group)
        with self._lock:
            for path in paths:
                del self.files[path]
            self.version += 1
            event = SimpleNamespace(paths=paths)
            return RewriteResult(self.version, 1, group.bytes, group.rows, None, event, (f"new{self.version}",))

    def check_writable(self):
        self.steps.append("check_writable")

    def reconcile(self):
        self.steps.append("reconcile")

    def committed(self, result):
        self.events.append(("committed", result.event.paths, None))

    def failed(self, group, started_at, error):
        assert started_at <= self.clock.now()
        self.events.append(("failed", tuple(file.path for file in group.files), error.code))


class FakeLease:
    """A lease that is free, unless ``other`` is the lease of another run."""

    def __init__(self, steps):
        self._steps = steps
        self.other = None
        self.is_stored = True

    def holder(self):
        self._steps.append("look at the lease")
        return self.other

    def acquire(self):
        self._steps.append("acquire")
        return Acquired(self.is_stored) if self.other is None else HeldBy(self.other)

    @contextmanager
    def renewed(self):
        self._steps.append("renew")
        try:
            yield
        finally:
            self._steps.append("release")


class FakeProgress:
    def __init__(self, steps):
        self._steps = steps
        self.planned_bytes, self.done_bytes, self.notes = [], [], []

    @contextmanager
    def begin(self):
        self._steps.append("show progress")
        try:
            yield self
        finally:
            self._steps.append("hide progress")

    def planned(self, size, note):
        self.planned_bytes.append(size)
        self.notes.append(note)

    def done(self, size):
        self.done_bytes.append(size)


class PlainThreads:
    """Threads of Python alone."""

    def __init__(self):
        self.prepared = set()

    def start(self, number, work):
        thread = threading.Thread(target=work, name=f"group-{number}", daemon=True)
        thread.start()
        return thread

    def prepare(self):
        self.prepared.add(threading.current_thread().name)


class FakeOptimizer:
    """The loop over fakes of everything: ``sizes`` are bytes of unindexed files, ``limits`` those of ``Limits``."""

    def __init__(self, sizes=(10, 10, 10, 10), dry_run=False, **limits):
        self.clock = FakeClock()
        self.table = FakeTable(self.clock, sizes)
        self.steps = self.table.steps
        self.lease, self.progress = FakeLease(self.steps), FakeProgress(self.steps)
        self.threads, self.runs = PlainThreads(), Runs()
        self.interrupted = False
        self.spend = None
        self.run = Run("t", "file:/t", "call", {}, self.clock.now())
        self._limits, self._dry_run = Limits(**limits), dry_run

    def optimize(self):
        parts = OptimizerParts(
            table="t",
            planner=self.table,
            check_writable=self.table.check_writable,
            rewrite=self.table.rewrite,
            threads=self.threads,
            lease=self.lease,
            events=self.table,
            progress=self.progress.begin,
            interrupted=lambda: self.interrupted,
            runs=self.runs,
            clock=self.clock,
            spend=self.spend,
        )
        return Optimizer(parts, self.run, self._limits, self._dry_run).optimize()

    def lease_of_another(self, seconds=30):
        now = self.clock.now()
        return Lease("r2", "elsewhere:7", "automatic", now, now + seconds * 1000)


COMMITTED, FAILED = "committed", "failed"


def committed(iteration):
    return iteration, COMMITTED, "UNINDEXED"


def lost(iteration):
    return iteration, FAILED, "USE_CONCURRENT_CHANGE"


def is_group(group, *paths):
    return tuple(file.path for file in group.files) == paths


def outcome(report):
    return [(row.iteration, row.state, row.reason) for row in report]
