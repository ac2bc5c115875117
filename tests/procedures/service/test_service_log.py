"""When the service consolidates logs: clock, engine and catalog are fakes, and no Spark is needed."""

import pytest
from service_fakes import FakeService

from catalog.errors import InvalidArgumentError, UseError
from catalog.properties.lifecycle_properties import Pace
from catalog.properties.log_properties import LogPolicy, log_policy
from procedures.process.application import application
from procedures.service.schedule import NoSchedule, schedule_of

COMMITS, INTERVAL = "use.log.consolidation.commits", "use.log.consolidation.interval"
MINUTE = 60_000


def test_once_the_table_has_so_many_new_commits():
    fake = FakeService()
    place = fake.tables.put("t", {COMMITS: "100"})
    fake.tick()
    assert (fake.engine.runs, fake.engine.consolidated) == ([], ["t"])
    (state,) = application().automations.all()
    assert (state.strategies, state.last_error) == (("LogConsolidation",), None)
    for commits, expected in ((99, 1), (1, 2), (50, 2), (250, 3)):
        fake.tables.versions[place] += commits
        for _ in range(3):
            fake.tick(10 * MINUTE)
        assert len(fake.engine.consolidated) == expected, commits


def test_once_in_an_interval_beside_reclamation():
    fake = FakeService()
    fake.tables.put("t", {INTERVAL: "1 hour", "use.retention.hours": "720"})
    for _ in range(13):
        fake.tick(10 * MINUTE)
    assert (len(fake.engine.consolidated), len(fake.engine.reclaimed)) == (3, 1)


def test_a_failure_is_shown_and_tried_again():
    fake = FakeService()
    fake.tables.put("t", {INTERVAL: "1 hour"})
    fake.engine.error = UseError("It broke.", code="USE_BROKEN")
    fake.tick()
    (state,) = application().automations.all()
    assert state.last_error == "USE_BROKEN: It broke."
    fake.engine.error = None
    fake.tick(10 * MINUTE)
    assert fake.engine.consolidated == ["t"]


def test_what_the_properties_mean():
    assert isinstance(schedule_of({"delta.checkpointInterval": "10"}), NoSchedule)
    both = {COMMITS: "7", INTERVAL: "2 hours"}
    assert log_policy({**both, "owner": "me"}) == LogPolicy(Pace(120 * MINUTE, 7), both)
    for key, text in ((COMMITS, "0"), (COMMITS, "many"), (INTERVAL, "-1 hour"), (INTERVAL, "soon")):
        with pytest.raises(InvalidArgumentError, match=key):
            log_policy({key: text})
