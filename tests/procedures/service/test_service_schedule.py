"""When the service runs which table: clock, engine and catalog are fakes, and no Spark is needed."""

import pytest
from service_fakes import MINUTE, FakeService

from catalog.errors import InvalidArgumentError, UseError
from procedures.process.application import application
from procedures.process.running_services import CatalogChange
from procedures.selection.unindexed_files import UnindexedFiles
from procedures.service.execution import Files
from procedures.service.service_settings import OPTIMIZATION_INTERVAL, ServiceSettings

WANTED = {"use.optimization.type": "UnindexedFiles"}


def states():
    return {known.table: known.state for known in application().automations.all()}


def test_a_table_that_asks_is_run_at_once_and_then_by_the_interval_when_it_changed():
    fake = FakeService()
    fake.tables.put("a", WANTED)
    fake.tables.put("b", {"use.index.columns": "x"})
    assert fake.tick() == ["a"]
    (known,) = application().automations.all()
    assert (known.state, known.strategies, known.last_error) == ("scheduled", ("UnindexedFiles",), None)
    assert (known.last_run, known.next_run) == (fake.clock.time, fake.clock.time + 10 * MINUTE)
    # Its own commits are no reason for another run, however often it is asked.
    for _ in range(25):
        fake.tick(MINUTE)
    assert len(fake.engine.runs) == 1
    fake.tables.commit("a")
    assert len(fake.tick(MINUTE)) == 1
    assert fake.tick(10 * MINUTE) == ["a", "a"]


@pytest.mark.parametrize("pace", [{}, {"use.clustering.enabled": "true"}, {"use.retention.hours": "240"}])
def test_a_clock_that_is_set_back_delays_runs_by_a_day_at_most(pace):
    fake = FakeService()
    fake.tables.put("a", {**(WANTED if not pace else {}), **pace})
    fake.tick()
    done = len(fake.engine.runs), len(fake.engine.reclaimed)
    fake.clock.set_back(30 * 24 * 60 * MINUTE)
    for _ in range(24 * 6 + 1):
        fake.tables.commit("a")
        fake.tick(10 * MINUTE)
    assert (len(fake.engine.runs), len(fake.engine.reclaimed)) > done
    assert application().automations.get("file:/a").next_run <= fake.clock.time + 10 * MINUTE


def test_what_a_long_run_committed_is_no_reason_for_another():
    fake = FakeService()
    fake.tables.put("a", WANTED)
    fake.engine.during = lambda run: fake.clock.go_on(15 * MINUTE)
    fake.tick()
    # The end of a run wakes the loop before it looks at the tables again.
    assert fake.tick(look=False) == ["a"]
    assert application().automations.get("file:/a").next_run > fake.clock.time


@pytest.mark.parametrize("trigger", [{}, {"use.optimization.trigger.commits": "5"}])
def test_a_table_that_is_made_anew_during_the_maintenance_of_a_run_begins_anew(trigger):
    fake = FakeService(at_once=False)
    wanted = {**WANTED, **trigger, "use.log.consolidation.interval": "10 minutes"}
    place = fake.tables.put("spark_catalog.shop.a", wanted)
    fake.tables.versions[place], fake.tables.ids[place] = 5000, "first"
    fake.engine.commits_of_others = 5
    maintain = fake.engine.maintain

    def replaced_meanwhile(*arguments):
        fake.engine.maintain = maintain
        fake.tables.versions[place], fake.tables.ids[place] = 3, "second"
        for _ in range(10):
            fake.tick(MINUTE)
        return maintain(*arguments)

    fake.engine.maintain = replaced_meanwhile
    for _ in range(3):
        fake.tick()
        fake.threads.run_all()
    assert fake.tables.versions[place] < 100
    runs = len(fake.engine.runs)
    for _ in range(10):
        fake.tables.commit("spark_catalog.shop.a")
        for _ in range(3):
            fake.tick(10 * MINUTE)
            fake.threads.run_all()
    assert len(fake.engine.runs) == runs + 10
    assert fake.service._workers._workers[place].database == "shop"


def test_an_idle_table_costs_one_probe():
    fake = FakeService()
    fake.tables.put("a", WANTED)
    fake.tick()
    fake.tick(MINUTE)
    probes, loads = fake.tables.probes, fake.tables.loads
    for _ in range(5):
        fake.tick(MINUTE)
    assert (fake.tables.probes - probes, fake.tables.loads - loads) == (5, 0)


def test_unset_stops():
    fake = FakeService()
    fake.tables.put("a", WANTED)
    fake.tick()
    fake.tables.put("a", {"use.optimization.bytes-per-iter": "5"})
    fake.tick(MINUTE)
    assert not states()
    fake.tables.commit("a")
    assert fake.tick(60 * MINUTE) == ["a"]


def test_properties_of_a_database_count_without_a_commit_to_the_table():
    fake = FakeService()
    fake.tables.put("a", {"use.index.columns": "x"})
    fake.tables.put("b", {"use.index.columns": "x", "use.fleet.enabled": "false"})
    assert fake.tick() == []
    fake.tables.of_database = {"use.fleet.enabled": "true"}
    assert fake.tick(MINUTE) == ["a"]
    fake.tick(MINUTE)
    loads = fake.tables.loads
    fake.tables.of_database = {}
    fake.tick(MINUTE)
    assert not states()
    assert fake.tables.loads == loads


def test_index_columns_are_looked_at_once_in_an_hour_until_the_owner_names_them():
    fake = FakeService()
    fake.tables.put("a", {"use.insights.consumption.enabled": "false"})
    fake.tables.put("b", {"use.index.columns": "x"})
    fake.tables.of_database = {"use.index.columns": "auto"}
    for _ in range(13):
        fake.tick(10 * MINUTE)
    assert fake.engine.looked_at == ["a"] * 3
    (known,) = application().automations.all()
    assert (known.table, known.strategies) == ("a", ("ColumnChoice",))
    fake.tables.put("a", {"use.index.columns": "x"})
    fake.tick(60 * MINUTE)
    assert not states()
    assert fake.engine.looked_at == ["a"] * 3


def test_stop_waits_for_the_group_and_ends_there():
    fake = FakeService(at_once=False)
    fake.tables.put("a", WANTED)
    fake.tick()
    assert states() == {"a": "running"}
    fake.tables.put("a", {})
    fake.tick(MINUTE)
    assert states() == {"a": "running"}
    stopped = []
    fake.engine.during = lambda run: stopped.append(run.stop_reason)
    fake.threads.run_all()
    assert stopped[0].code == "PROPERTIES_UNSET"
    assert not states()


def test_changed_parameters_wait_for_a_run_and_replace_an_idle_schedule_at_once():
    fake = FakeService(at_once=False)
    fake.tables.put("a", WANTED)
    fake.tick()
    fake.tables.put("a", {"use.optimization.type": "LeveledCompaction"})
    fake.tick(MINUTE)
    stopped = []
    fake.engine.during = lambda run: stopped.append(run.stop_reason)
    fake.threads.run_all()
    assert stopped == [None]
    fake.tick()
    fake.threads.run_all()
    assert [strategies for _, strategies, _ in fake.engine.runs] == [("UnindexedFiles",), ("LeveledCompaction",)]
    fake.tables.put("a", WANTED)
    fake.tick(MINUTE)
    fake.threads.run_all()
    assert fake.engine.runs[-1][1] == ("UnindexedFiles",)
    # A property of ours that is no business of the schedule.
    fake.tables.put("a", {**WANTED, "use.index.columns": "x"})
    fake.tick(MINUTE)
    assert len(fake.engine.runs) == 3


def test_unset_and_set_again_while_it_runs():
    fake = FakeService(at_once=False)
    fake.tables.put("a", WANTED)
    fake.tick()
    fake.tables.put("a", {})
    fake.tick(MINUTE)
    fake.tables.put("a", WANTED)
    fake.tick(MINUTE)
    fake.threads.run_all()
    assert states() == {"a": "scheduled"}
    fake.tick()
    assert states() == {"a": "running"}
    fake.threads.run_all()


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"use.optimization.type": "Nothing"}, "USE_UNKNOWN_STRATEGY"),
        ({**WANTED, "use.optimization.bytes-per-iter": "x"}, "use.optimization.bytes-per-iter = 'x'"),
        ({**WANTED, "use.optimization.nothing": "1"}, "USE_UNKNOWN_PROPERTY"),
        ({"use.optimization.type": "LeveledCompaction", "use.optimization.batch-bytes": "5"}, "batch-bytes"),
        ({**WANTED, "use.optimization.batch-bytes": "-5"}, "use.optimization.batch-bytes: batch_bytes = '-5'"),
        ({"use.optimization.autoOptimize.enabled": "true", "use.optimization.trigger.commits": "no"}, "'no'"),
        (
            {
                "use.optimization.autoOptimize.enabled": "true",
                "use.optimization.autoOptimize.optimizeUnindexedFiles.fromTimestamp": "yesterday",
            },
            "yesterday",
        ),
    ],
)
def test_a_wrong_value_is_the_tables_state_and_no_one_elses(properties, message):
    fake = FakeService()
    fake.tables.put("a", properties)
    fake.tables.put("b", WANTED)
    assert fake.tick() == ["b"]
    assert states() == {"a": "failed", "b": "scheduled"}
    assert message in application().automations.get("file:/a").last_error
    fake.tables.put("a", WANTED)
    assert fake.tick(MINUTE) == ["b", "a"]
    assert states() == {"a": "scheduled", "b": "scheduled"}


def test_a_wrong_value_and_unset_while_it_runs():
    fake = FakeService(at_once=False)
    fake.tables.put("a", WANTED)
    fake.tick()
    fake.tables.put("a", {"use.optimization.type": ""})
    fake.tick(MINUTE)
    fake.tables.put("a", {})
    fake.tick(MINUTE)
    fake.threads.run_all()
    assert not states()


def test_a_wrong_value_while_it_runs_and_its_end():
    fake = FakeService(at_once=False)
    fake.tables.put("a", WANTED)
    fake.tick()
    fake.tables.put("a", {"use.optimization.type": ""})
    fake.tick(MINUTE)
    fake.threads.run_all()
    assert states() == {"a": "failed"}
    fake.tables.put("a", {})
    fake.tick(MINUTE)
    assert not states()


def test_a_strategy_that_is_registered_later(monkeypatch):

    fake = FakeService()
    fake.tables.put("a", {"use.optimization.type": "Mine"})
    fake.tick()
    assert states() == {"a": "failed"}
    monkeypatch.setitem(application().own_strategies, "Mine", UnindexedFiles())
    for _ in range(10):
        fake.tick(MINUTE)
    assert states() == {"a": "scheduled"}


def test_an_error_is_shown_and_tried_again_by_the_interval():
    fake = FakeService()
    fake.tables.put("a", WANTED)
    fake.engine.error = UseError("No room.", code="USE_NO_ROOM")
    fake.tick()
    known = application().automations.get("file:/a")
    assert (known.state, known.last_error) == ("failed", "USE_NO_ROOM: No room.")
    assert len(fake.tick(9 * MINUTE)) == 1
    fake.engine.error = None
    assert len(fake.tick(MINUTE)) == 2
    assert (states(), application().automations.get("file:/a").last_error) == ({"a": "scheduled"}, None)


def test_as_many_tables_at_once_as_allowed_and_those_that_wait_longest_first():
    fake = FakeService(at_once=False)
    fake.conf["spark.qbeast.use.service.max-tables"] = "2"
    for name in "abc":
        fake.tables.put(name, WANTED)
    fake.tick()
    assert states() == {"a": "running", "b": "running", "c": "scheduled"}
    # The others have had their interval: they end at the next boundary, and the one that waits goes on.
    fake.tick(11 * MINUTE)
    stopped = []
    fake.engine.during = lambda run: stopped.append(run.stop_reason.code if run.stop_reason else None)
    fake.threads.run_all()
    assert stopped == ["YIELDED", "YIELDED"]
    fake.tick()
    assert states()["c"] == "running"
    assert sorted(states().values()) == ["running", "running", "scheduled"]
    fake.threads.run_all()


def test_suspended_by_whomever():
    fake = FakeService()
    place = fake.tables.put("a", WANTED)
    fake.engine.is_suspended.add(place)
    assert fake.tick() == []
    assert states() == {"a": "suspended"}
    assert fake.tick(20 * MINUTE) == []
    fake.engine.is_suspended.clear()
    # Another process resumed it: noticed at the interval. This one: at once.
    assert fake.tick(10 * MINUTE) == ["a"]
    fake.tables.commit("a")
    fake.engine.is_suspended.add(place)
    fake.service.notify(CatalogChange("suspended", "a", place))
    fake.tick(MINUTE)
    assert states() == {"a": "suspended"}
    fake.engine.is_suspended.clear()
    fake.service.notify(CatalogChange("resumed", "a", place))
    assert fake.tick(look=False) == ["a", "a"]


def test_a_run_of_a_table_that_another_process_suspends():
    fake = FakeService(at_once=False)
    place = fake.tables.put("a", WANTED)
    fake.tick()
    fake.engine.is_suspended.add(place)
    fake.tick(MINUTE)
    stopped = []
    fake.engine.during = lambda run: stopped.append(run.stop_reason.code)
    fake.threads.run_all()
    assert stopped == ["SUSPENDED"]
    assert states() == {"a": "suspended"}


def test_dropped_renamed_and_made_again():
    fake = FakeService()
    fake.tables.put("a", WANTED)
    fake.tick()
    # An external table: its place stays.
    fake.tables.names["file:/a"] = "b"
    fake.tick(MINUTE)
    assert states() == {"b": "scheduled"}
    assert len(fake.engine.runs) == 1
    # A managed one moves.
    fake.tables.drop("b")
    fake.tables.put("c", WANTED)
    assert fake.tick(MINUTE) == ["a", "c"]
    assert states() == {"c": "scheduled"}
    # Another table at the same place, made by another process: noticed by version, or by the tenth look.
    fake.tables.ids["file:/c"] = "another"
    fake.tables.versions["file:/c"] = 1
    for _ in range(10):
        fake.tick(MINUTE)
    assert fake.engine.runs[-1][0] == "c"
    assert len(fake.engine.runs) == 3
    fake.tables.drop("c")
    fake.tick(MINUTE)
    assert not states()


def test_the_catalog_tells_before_the_next_look():
    fake = FakeService()
    fake.tick()
    place = fake.tables.put("a", WANTED)
    fake.service.notify(CatalogChange("changed", "a", place))
    assert fake.tick(look=False) == ["a"]
    fake.tables.drop("a")
    moved = fake.tables.put("b", WANTED)
    fake.service.notify(CatalogChange("renamed", "b", moved, "a"))
    assert fake.tick(look=False) == ["a", "b"]
    assert states() == {"b": "scheduled"}
    fake.tables.drop("b")
    fake.service.notify(CatalogChange("dropped", "b"))
    fake.tick(look=False)
    assert not states()


def test_commits_trigger_and_the_interval_does_not():
    fake = FakeService()
    fake.tables.put("a", {**WANTED, "use.optimization.trigger.commits": "3"})
    fake.engine.commits_of_others = 2
    assert fake.tick() == []
    assert application().automations.get("file:/a").next_run is None
    assert fake.tick(60 * MINUTE) == []
    looks = len(fake.engine.looks)
    fake.tick(MINUTE)
    assert len(fake.engine.looks) == looks, "nothing was committed, nothing is to be looked at"
    fake.tables.commit("a")
    fake.engine.commits_of_others = 3
    assert fake.tick(1000) == ["a"]
    assert fake.tick(60 * MINUTE) == ["a"]


@pytest.mark.parametrize(
    ("key", "value", "below", "reached"),
    [
        ("unindexed-bytes", "100", Files(1000, 99, 0), Files(1000, 100, 0)),
        ("unindexed-share", "0.5", Files(1000, 499, 0), Files(1000, 500, 0)),
        ("small-files", "4", Files(1000, 0, 3), Files(1000, 0, 4)),
    ],
)
def test_triggers_of_files(key, value, below, reached):
    fake = FakeService()
    fake.tables.put("a", {**WANTED, f"use.optimization.trigger.{key}": value})
    fake.engine.of_files = below
    assert fake.tick() == []
    fake.engine.of_files = reached
    assert fake.tick(60 * MINUTE) == [], "nothing was committed"
    fake.tables.commit("a")
    assert fake.tick(1000) == ["a"]


def test_a_trigger_whose_run_could_not_work_waits_for_the_interval():
    fake = FakeService()
    fake.tables.put("a", {**WANTED, "use.optimization.trigger.commits": "1"})
    fake.engine.commits_of_others = 1
    fake.engine.unsettled = True
    fake.tick()
    for _ in range(5):
        fake.tick(1000)
    assert len(fake.engine.runs) == 1
    fake.engine.unsettled = False
    # The first run has committed a group, which counts as an optimization.
    fake.engine.commits_of_others = 0
    assert len(fake.tick(10 * MINUTE)) == 2
    fake.tables.commit("a")
    assert len(fake.tick(60 * MINUTE)) == 2


def test_a_trigger_is_asked_again_after_a_check_that_failed_and_after_a_run_of_some_strategies():
    fake = FakeService()
    own = {"use.clustering.enabled": "true", "use.clustering.interval": "1 hour"}
    fake.tables.put("a", {**WANTED, **own, "use.optimization.trigger.commits": "1"})
    commits = fake.engine.commits
    fake.engine.commits = lambda *arguments: 1 / 0
    fake.tick()
    assert states() == {"a": "failed"}
    fake.engine.commits = commits
    assert fake.tick(10 * MINUTE) == []
    assert states() == {"a": "scheduled"}
    fake.engine.commits_of_others = 1
    fake.tables.commit("a")
    assert len(fake.tick(MINUTE)) == 1
    fake.tables.commit("a")
    assert len(fake.tick(10 * MINUTE)) == 2
    assert fake.engine.runs[-1][1] == ("UnindexedFiles",)
    # Clustering has not run on the last version, and waits for its pace and for a trigger.
    fake.engine.commits_of_others = 0
    for _ in range(4):
        assert len(fake.tick(30 * MINUTE)) == 2


def test_switched_off_and_on_again():
    fake = FakeService()
    fake.tables.put("a", WANTED)
    fake.tick()
    fake.conf["spark.qbeast.use.service.enabled"] = "false"
    fake.tables.commit("a")
    assert fake.tick(60 * MINUTE) == ["a"]
    assert not states()
    fake.conf["spark.qbeast.use.service.enabled"] = "true"
    assert fake.tick() == ["a", "a"]


def test_stop_ends_runs_and_forgets():
    fake = FakeService(at_once=False)
    fake.tables.put("a", WANTED)
    fake.tables.put("b", {**WANTED, "use.optimization.trigger.commits": "3"})
    fake.tick()
    fake.service.stop()
    stopped = []
    fake.engine.during = lambda run: stopped.append(run.stop_reason.code)
    fake.threads.run_all()
    assert stopped == ["SERVICE_STOPPED"]
    assert not states()


def test_a_metastore_that_is_away_leaves_known_tables_alone(monkeypatch):
    fake = FakeService()
    fake.tables.put("a", WANTED)
    fake.tick()
    fake.tables.commit("a")
    fake.tick(MINUTE)

    def away():
        raise OSError("away")

    monkeypatch.setattr(fake.tables, "listed", away)
    assert fake.tick(10 * MINUTE) == ["a", "a"]


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("10 minutes", 600_000),
        ("30000 ms", 30_000),
        ("30000", 30_000),
        ("90s", 90_000),
        ("5min", 300_000),
        ("5m", 300_000),
        ("1 hour 30 minutes", 5_400_000),
        ("INTERVAL 2 Hours", 7_200_000),
        ("1.5 days", 129_600_000),
    ],
)
def test_times(text, milliseconds):
    assert OPTIMIZATION_INTERVAL.parse(text) == milliseconds


@pytest.mark.parametrize("text", ["", "soon", "-5 minutes", "0s", "5 parsecs", "5 6", "minutes 5"])
def test_no_times(text):
    with pytest.raises(InvalidArgumentError, match="10 minutes"):
        OPTIMIZATION_INTERVAL.parse(text)


def test_settings():
    assert ServiceSettings.of(lambda _, default: default) == ServiceSettings()
    for key, value in (("service.enabled", "maybe"), ("service.max-tables", "0"), ("listener-interval", "x")):
        with pytest.raises(InvalidArgumentError, match=key):
            ServiceSettings.of(lambda k, d, key=key, value=value: value if k.endswith(key) else d)
