"""An engine and a catalog for tests of the service: nothing here takes time, and nothing touches a table."""

from types import SimpleNamespace

from fake_clock import FakeClock

from catalog.jvm.log_probe import Sighting
from catalog.properties.inherited import InheritedProperties
from catalog.state.fleet_ledger import FleetLedger
from procedures.fleet.appraisal import Appraisal
from procedures.fleet.offer import Offer
from procedures.process.application import application
from procedures.service.ended_run import log_problems
from procedures.service.execution import Files, RunOutcome, TaskQueue
from procedures.service.schedule import COLUMN_CHOICE, HEALTH_CHECK, INSIGHTS, RECLAMATION
from procedures.service.service import Service
from procedures.service.service_metrics import ServiceMetrics

MINUTE = 60_000


class FakeTables:
    """Tables by location, each with a version and properties."""

    def __init__(self):
        self.names, self.versions, self.properties, self.ids = {}, {}, {}, {}
        self.probes, self.loads, self.lists = 0, 0, 0
        # How long ago the last commit of each table is at the start; None if that is not known.
        self.rest = None
        # Tables that a look does not come to.
        self.late = set()
        self.of_database, self.of_session = {}, {}

    def put(self, name, properties, location=None):
        place = location or f"file:/{name}"
        self.names[place] = name
        self.versions[place] = self.versions.get(place, -1) + 1
        self.properties[place] = dict(properties)
        self.ids.setdefault(place, f"id of {place}")
        return place

    def commit(self, name):
        self.versions[self.place(name)] += 1

    def drop(self, name):
        place = self.place(name)
        for facts in (self.names, self.versions, self.properties, self.ids):
            facts.pop(place)

    def place(self, name):
        return next(place for place, known in self.names.items() if known == name)

    def listed(self):
        self.lists += 1
        return dict(self.names)

    def add(self, name, location):
        return location

    def inherited(self, names):
        return lambda name: InheritedProperties(self.of_database, self.of_session)

    def look(self, questions):
        return [self._look(*question) for question in questions]

    def _look(self, place, version, modified=None):
        if place in self.late:
            return Sighting("late")
        if place not in self.versions:
            return Sighting("missing")
        self.probes += 1
        if version == self.versions[place]:
            # With ``modified``, the log file of the version is the same one as before.
            return Sighting("unchanged")
        self.loads += 1
        facts = self.versions[place], self.ids[place], dict(self.properties[place])
        return Sighting("changed", *facts, modified=-1 if self.rest is None else FakeClock().now() - self.rest)


class FakeTexts:
    """The texts of a ledger in memory."""

    def __init__(self):
        self.texts = {}

    def create(self, name, text):
        if name in self.texts:
            return False
        self.texts[name] = text
        return True

    def read(self, name):
        return self.texts.get(name)

    def names(self):
        return sorted(self.texts)

    def delete(self, names):
        for name in names:
            self.texts.pop(name, None)


class FakeEngine:
    """Remembers the runs; each finds nothing more to do at once, unless it is told otherwise."""

    def __init__(self, tables):
        self.tables = tables
        self.runs, self.looks, self.reclaimed, self.consolidated = [], [], [], []
        self.health_checks, self.recorded, self.looked_at = [], [], []
        self.is_suspended = set()
        self.during = lambda run: None
        self.unsettled = False
        self.note = ""
        self.error = None
        self.commits_of_others = 0
        self.of_files = Files(0, 0, 0)
        self.queued, self.queue_looks = TaskQueue(0, 4), []
        self.appraised, self.offers, self.is_read = [], {}, set()
        self.of_fleet = FleetLedger(FakeTexts())

    def prepare(self, pool):
        """Its threads need nothing."""

    def appraise(self, run, schedule, pool, group_bytes):
        self.appraised.append(run.table)
        if self.error:
            raise self.error
        saving, cost = self.offers.get(run.table, (100.0, 10))
        offer = Offer(saving, cost, is_recorded=True) if cost else None
        return Appraisal(self.tables.versions[run.location], offer, cost)

    def read_since(self, location, since):
        return location in self.is_read

    def ledger(self, folder):
        return self.of_fleet

    def run(self, run, schedule, pool, turn):
        self.runs.append((run.table, schedule.strategies, pool))
        self.during(run)
        if self.error:
            raise self.error
        cost = self.offers.get(run.table, (0, 0))[1]
        if cost and turn.budget.spend(cost):
            return RunOutcome(None, self.note)
        run.committed_bytes += cost
        if run.stop_reason or self.unsettled:
            return RunOutcome(None, self.note)
        # As if it had found files, and committed them.
        self.tables.versions[run.location] += 1
        return RunOutcome(self.tables.versions[run.location], self.note)

    def maintain(self, run, schedule, name, pool):
        if self.error:
            raise self.error
        if name == RECLAMATION:
            self.reclaimed.append((run.table, schedule.retention.hours))
        elif name == HEALTH_CHECK:
            self.health_checks.append(run.table)
        elif name == COLUMN_CHOICE:
            self.looked_at.append(run.table)
        elif name == INSIGHTS:
            self.recorded.append(run.table)
        else:
            self.consolidated.append(run.table)
        return True

    def suspended(self, location):
        return location in self.is_suspended

    def commits(self, location, after, newest, most):
        self.looks.append(location)
        return self.commits_of_others

    def files(self, table):
        self.looks.append(table)
        return self.of_files

    def queue(self, pool):
        self.queue_looks.append(pool)
        if isinstance(self.queued, Exception):
            raise self.queued
        return self.queued


class FakeThreads:
    """Threads that run when they are told to."""

    def __init__(self, at_once=True):
        self.at_once = at_once
        self.waiting = []

    def __call__(self, name, work):
        self.waiting.append(work)
        if self.at_once:
            self.run_all()

    def run_all(self):
        while self.waiting:
            self.waiting.pop(0)()


class FakeService:
    """A service over fakes of everything; ``conf`` are its settings."""

    def __init__(self, at_once=True, exchange=None, on_run=log_problems, **conf):
        self.conf = {f"spark.qbeast.use.{key.replace('_', '-')}": value for key, value in conf.items()}
        context = SimpleNamespace(_jsc=None)
        session = SimpleNamespace(
            conf=SimpleNamespace(get=lambda key, default=None: self.conf.get(key, default)), sparkContext=context
        )
        self.clock, self.tables, self.threads = FakeClock(), FakeTables(), FakeThreads(at_once)
        self.engine = FakeEngine(self.tables)
        self.metrics = ServiceMetrics()
        self.service = Service(
            session,
            clock=self.clock,
            engine=self.engine,
            source=self.tables,
            spawn=self.threads,
            metrics=self.metrics,
            exchange=exchange,
            on_run=on_run,
        )

    def tick(self, after=0, **more):
        self.clock.go_on(after)
        self.service.tick(**more)
        return [name for name, *_ in self.engine.runs]


ON = {"use.fleet.enabled": "true", "use.index.columns": "x", "use.optimization.quietPeriod": "0"}


def the_automation(table):
    """The published state of a table."""
    return next(a for a in application().automations.all() if a.table == table)


def fleet(offers, budget=None, **of_database):
    """A service over tables of the database ``shop``, each with the bytes that it saves per day, and its cost."""
    fake = FakeService()
    keys = {key.replace("_", "."): value for key, value in of_database.items()}
    fake.tables.of_database = {**ON, **({"use.fleet.maxBytes": str(budget)} if budget else {}), **keys}
    for name, offer in offers.items():
        fake.tables.put(f"spark_catalog.shop.{name}", {})
        fake.engine.offers[f"spark_catalog.shop.{name}"] = offer
    return fake


def ran(fake):
    """The tables of the runs, without their database."""
    return [table.rsplit(".", 1)[1] for table, _, _ in fake.engine.runs]


def ticks(fake, times=6):
    """Lets the service look at its tables so many times."""
    for _ in range(times):
        fake.tick(1)
