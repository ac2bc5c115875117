"""When the service reclaims history: clock, engine and catalog are fakes, and no Spark is needed."""

from itertools import pairwise
from types import SimpleNamespace

import pytest
from pyspark.sql.types import StructType
from service_fakes import MINUTE, FakeService

from catalog.errors import InvalidArgumentError, RetentionError, UnknownNameError, UseError
from catalog.properties.retention_properties import RetentionPolicy, check_retention, retention_policy
from procedures.declare.runs import Run
from procedures.process.application import application
from procedures.service import execution
from procedures.service.metadata_changes import TableMetadata, checked_change
from procedures.service.schedule import RECLAMATION, NoSchedule, Schedule, schedule_of

DAY = 24 * 60 * MINUTE
KEEPS = {"use.retention.hours": "720"}
_EMPTY = StructType()
WANTED = {"use.optimization.type": "UnindexedFiles", **KEEPS}


def known():
    (state,) = application().automations.all()
    return state


def test_history_is_reclaimed_once_a_day_without_new_commits():
    fake = FakeService()
    fake.tables.put("t", KEEPS)
    fake.tick()
    assert (fake.engine.runs, fake.engine.reclaimed) == ([], [("t", 720.0)])
    assert (known().state, known().strategies, known().last_error) == ("scheduled", ("Reclamation",), None)
    for _ in range(24 * 6 - 1):
        fake.tick(10 * MINUTE)
    assert len(fake.engine.reclaimed) == 1
    fake.tick(10 * MINUTE)
    assert len(fake.engine.reclaimed) == 2
    assert fake.engine.runs == []


def test_beside_an_optimization_which_stays_settled():
    fake = FakeService()
    fake.tables.put("t", {**WANTED, "use.vacuum.interval": "1 hour"})
    assert fake.tick() == ["t"]
    assert len(fake.engine.reclaimed) == 1
    for _ in range(12):
        fake.tick(10 * MINUTE)
    assert len(fake.engine.runs) == 1
    assert len(fake.engine.reclaimed) == 3


def test_beside_triggers_that_are_not_reached():
    fake = FakeService()
    fake.tables.put("t", {**WANTED, "use.optimization.trigger.commits": "5"})
    fake.tick()
    assert (fake.engine.runs, len(fake.engine.reclaimed)) == ([], 1)
    fake.tick(DAY)
    assert (fake.engine.runs, len(fake.engine.reclaimed)) == ([], 2)


def test_a_suspended_table_keeps_its_history():
    fake = FakeService()
    place = fake.tables.put("t", KEEPS)
    fake.engine.is_suspended.add(place)
    fake.tick()
    fake.tick(DAY)
    assert fake.engine.reclaimed == []
    fake.engine.is_suspended.clear()
    fake.tick(10 * MINUTE)
    assert len(fake.engine.reclaimed) == 1


def test_a_failure_is_shown_and_tried_again_after_the_interval():
    fake = FakeService()
    fake.tables.put("t", KEEPS)
    fake.engine.error = UseError("It broke.", code="USE_BROKEN")
    fake.tick()
    assert (known().state, known().last_error) == ("failed", "USE_BROKEN: It broke.")
    fake.engine.error = None
    fake.tick(MINUTE)
    assert fake.engine.reclaimed == []
    fake.tick(10 * MINUTE)
    assert (len(fake.engine.reclaimed), known().state) == (1, "scheduled")


def test_failing_maintenance_is_tried_less_and_less_often_and_delays_no_optimization():
    fake, attempts = FakeService(), []
    maintain = fake.engine.maintain

    def fail(*arguments):
        attempts.append(fake.clock.time)
        raise OSError("cannot be read")

    fake.engine.maintain = fail
    fake.tables.put("t", WANTED)
    for _ in range(3 * 24 * 6):
        fake.tables.commit("t")
        fake.tick(10 * MINUTE)
    assert len(fake.engine.runs) == 3 * 24 * 6
    pauses = [after - before for before, after in pairwise(attempts)]
    assert pauses[:4] == [10 * MINUTE, 20 * MINUTE, 40 * MINUTE, 80 * MINUTE]
    assert max(pauses) == DAY
    assert (known().state, known().next_run) == ("failed", fake.clock.time + 10 * MINUTE)
    assert f"QUARANTINED: {len(attempts)} attempts at maintenance in a row failed" in known().note
    # It ends by itself.
    fake.engine.maintain = maintain
    for _ in range(24 * 6 + 1):
        fake.tick(10 * MINUTE)
    assert (known().state, known().last_error, known().note) == ("scheduled", None, None)
    assert len(fake.engine.reclaimed) == 1


def test_a_reclamation_that_is_asked_to_stop_is_not_done(monkeypatch):
    snapshot = SimpleNamespace(retention_hours=168.0, settings=KEEPS)
    table = SimpleNamespace(snapshot=lambda: snapshot, location="file:/t")
    monkeypatch.setattr(execution, "prepare_thread", lambda spark, pool: None)
    monkeypatch.setattr(execution, "ManagedTable", SimpleNamespace(find=lambda spark, name: table))
    during = []

    class FakeReclamation:
        def __init__(self, table, settings, trigger, parameters, part_of):
            self.part_of = part_of

        def run(self):
            for act in during:
                act(self.part_of)

    monkeypatch.setattr(execution, "Reclamation", FakeReclamation)
    engine, run = execution.SparkEngine(None, application()), Run("t", "file:/t", "automatic", {}, 0)
    assert engine.maintain(run, Schedule.of_table(KEEPS), RECLAMATION, "use") is True
    during.append(lambda part_of: part_of.request_stop("SUSPENDED", "suspended"))
    assert engine.maintain(run, Schedule.of_table(KEEPS), RECLAMATION, "use") is False
    assert run.stop_reason.code == "SUSPENDED"


def test_maintenance_that_is_not_done_is_tried_again_after_the_interval():
    fake = FakeService()
    fake.tables.put("t", KEEPS)
    maintain, tries = fake.engine.maintain, []
    fake.engine.maintain = lambda *arguments: tries.append(1) and False
    fake.tick()
    fake.tick(9 * MINUTE)
    assert len(tries) == 1
    fake.engine.maintain = maintain
    fake.tick(MINUTE)
    assert (len(fake.engine.reclaimed), known().last_error) == (1, None)


def test_nothing_is_reclaimed_without_a_property():
    assert retention_policy({"use.clustering.enabled": "true"}) is None
    assert isinstance(schedule_of({"delta.deletedFileRetentionDuration": "interval 1 hours"}), NoSchedule)
    fake = FakeService()
    fake.tables.put("t", {"use.optimization.type": "UnindexedFiles"})
    fake.tick()
    fake.tick(DAY)
    assert fake.engine.reclaimed == []


def test_what_the_properties_mean():
    assert retention_policy(KEEPS) == RetentionPolicy(DAY, 720.0, KEEPS)
    asked = {"use.vacuum.interval": "6 hours"}
    assert retention_policy(asked) == RetentionPolicy(DAY // 4, None, asked)
    for key, text in (("use.retention.hours", "0"), ("use.retention.hours", "nan"), ("use.vacuum.interval", "never")):
        with pytest.raises(InvalidArgumentError, match=key):
            retention_policy({key: text})
    with pytest.raises(UnknownNameError, match=r"Did you mean use\.retention\.hours"):
        checked_change(TableMetadata({}, _EMPTY), TableMetadata({"use.retention.hour": "9"}, _EMPTY))


def test_a_retention_below_that_of_delta_is_refused():
    check_retention({"use.retention.hours": "168"})
    with pytest.raises(RetentionError, match=r"use.retention.hours = 167 .*deletedFileRetentionDuration of 168 hours"):
        change({}, {"use.retention.hours": "167"})
    lowered = {"delta.deletedFileRetentionDuration": "interval 2 hours"}
    change({}, {**lowered, "use.retention.hours": "2"})
    # Delta's own retention must not be raised above it either.
    with pytest.raises(RetentionError, match="of 3 hours"):
        change(
            {**lowered, "use.retention.hours": "2"},
            {"delta.deletedFileRetentionDuration": "interval 3 hours", "use.retention.hours": "2"},
        )
    # Another engine has set it; statements about something else still work.
    broken = {"use.retention.hours": "1"}
    change(broken, {**broken, "owner": "me"})


def change(before, after):
    return checked_change(TableMetadata(before, _EMPTY), TableMetadata(after, _EMPTY))
