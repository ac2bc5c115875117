"""Clustering and compaction in the background: what properties ask for, and how often it runs. No Spark is needed."""

import pytest
from pyspark.sql.types import StructType
from service_fakes import MINUTE, FakeService

from catalog.errors import ConcurrentChangeError, UseError
from catalog.properties.checks import check_property
from catalog.properties.lifecycle_properties import COMPACTION_DELETED_RATIO, Pace, lifecycle_policies
from catalog.properties.names import PROPERTIES, unknown_property
from catalog.properties.optimization_properties import effective_type
from catalog.properties.option_properties import property_key
from procedures.selection import strategy
from procedures.service.execution import RunOutcome
from procedures.service.schedule import InvalidSchedule, Schedule, schedule_of
from procedures.service.service_metrics import RunTotals

CLUSTERING = {"use.clustering.enabled": "true"}


def _strategies(fake):
    return [strategies for _, strategies, _ in fake.engine.runs]


def test_properties_become_options():
    given = {
        **CLUSTERING,
        "use.clustering.minFiles": "8",
        "use.clustering.minBytes": "1MB",
        "use.clustering.tierRatio": "6",
        "use.clustering.isolateBytes": "64MB",
        "use.clustering.maxTimeRange": "1 hour",
        "use.clustering.interval": "30 minutes",
        "use.compaction.interval": "1 day",
        "use.compaction.commits": "50",
        "use.compaction.minDeletedRatio": "0.2",
    }
    schedule = Schedule.of_table(given)
    assert schedule.strategies == ("DeleteCompaction", "SizeTieredClustering")
    assert schedule.arguments["options"] == {
        "min_deleted_ratio": "0.2",
        "min_files": "8",
        "min_bytes": "1MB",
        "tier_ratio": "6",
        "isolate_bytes": "64MB",
        "max_time_range": "1 hour",
    }
    values = schedule.settings().selection["SizeTieredClustering"].options
    assert (values["min_bytes"], values["isolate_bytes"], values["max_time_range"]) == (2**20, 2**26, 60 * MINUTE)
    assert schedule.paces == {
        "DeleteCompaction": Pace(24 * 60 * MINUTE, 50),
        "SizeTieredClustering": Pace(30 * MINUTE),
    }
    assert schedule.parameters == given
    assert effective_type(given) == "DeleteCompaction,SizeTieredClustering"


def test_a_primary_key_adds_a_strategy():
    given = {"use.compaction.commits": "5", "use.compaction.primaryKey": "a,b", "use.compaction.orderBy": "ts"}
    schedule = Schedule.of_table(given)
    assert schedule.strategies == ("LatestRowCompaction", "DeleteCompaction")
    assert schedule.arguments["options"] == {"primary_key": "a,b", "order_by": "ts"}
    assert set(schedule.paces.values()) == {Pace(None, 5)}
    assert schedule.only(["DeleteCompaction"]).arguments["options"] == {}
    for name in ("primaryKey", "orderBy"):
        with pytest.raises(UseError, match="is missing"):
            lifecycle_policies({f"use.compaction.{name}": "a"})
    # Without a condition that starts it, nothing removes rows.
    assert lifecycle_policies({"use.compaction.primaryKey": "a", "use.compaction.orderBy": "ts"}) == ()


def test_what_applies_without_a_property_is_what_the_strategy_declares():
    defaults = Schedule.of_table(CLUSTERING).settings().selection["SizeTieredClustering"].options
    for option in strategy("SizeTieredClustering").options:
        setting = PROPERTIES[property_key("use.clustering.", option.name)]
        assert defaults[option.name] == option.default == (setting.value({}) if setting.default else None)
    ratio = {o.name: o.default for o in strategy("DeleteCompaction").options}["min_deleted_ratio"]
    assert COMPACTION_DELETED_RATIO.value({}) == ratio


def test_the_former_name_of_a_property_is_accepted():
    former, name = "use.compaction.deletedRatio", "use.compaction.minDeletedRatio"
    given = {"use.compaction.commits": "5", former: "0.3"}
    schedule = Schedule.of_table(given)
    assert schedule.arguments["options"] == {"min_deleted_ratio": "0.3"}
    assert schedule.parameters == given
    assert Schedule.of_table({**given, name: "0.1"}).arguments["options"] == {"min_deleted_ratio": "0.1"}
    assert unknown_property(former) is None
    with pytest.raises(UseError, match=former):
        check_property(former, "1.5", StructType(), ())
    with pytest.raises(UseError, match=f"Did you mean {name}"):
        raise unknown_property("use.compaction.minDeletedRatios")


def test_nothing_is_asked_for_unless_it_is_enabled():
    assert lifecycle_policies({"use.clustering.minFiles": "8", "use.compaction.minDeletedRatio": "0.2"}) == ()
    assert lifecycle_policies({"use.clustering.enabled": "false"}) == ()


def test_an_index_is_maintained_first():
    schedule = Schedule.of_table({**CLUSTERING, "use.optimization.type": "UnindexedFiles"})
    assert schedule.strategies == ("UnindexedFiles", "SizeTieredClustering")
    assert schedule.only(["UnindexedFiles"]).arguments["options"] == {}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("use.clustering.enabled", "perhaps"),
        ("use.clustering.minFiles", "1"),
        ("use.clustering.tierRatio", "0"),
        ("use.clustering.isolateBytes", "-1"),
        ("use.clustering.maxTimeRange", "soon"),
        ("use.clustering.interval", "0 s"),
        ("use.clustering.minfile", "3"),
        ("use.compaction.deletedRatio", "1.5"),
        ("use.compaction.minDeletedRatio", "1.5"),
        ("use.compaction.commits", "0"),
        ("use.compaction.every", "1 day"),
    ],
)
def test_wrong_properties_are_named(key, value):
    with pytest.raises(UseError, match=key):
        Schedule.of_table({key: value})
    assert isinstance(schedule_of({key: value}), InvalidSchedule)


def test_clustering_runs_once_per_interval():
    fake = FakeService()
    fake.tables.put("a", {**CLUSTERING, "use.clustering.interval": "1 hour"})
    fake.tick()
    for _ in range(12):
        fake.tables.commit("a")
        fake.tick(10 * MINUTE)
    assert _strategies(fake) == [("SizeTieredClustering",)] * 3


def test_other_strategies_do_not_wait_for_clustering():
    fake = FakeService()
    properties = {**CLUSTERING, "use.clustering.interval": "1 hour", "use.optimization.type": "UnindexedFiles"}
    fake.tables.put("a", properties)
    for _ in range(7):
        fake.tables.commit("a")
        fake.tick(10 * MINUTE)
    both, one = ("UnindexedFiles", "SizeTieredClustering"), ("UnindexedFiles",)
    assert _strategies(fake) == [both, one, one, one, one, one, both]


def test_an_idle_table_is_left_alone_once_every_strategy_has_run():
    fake = FakeService()
    fake.tables.put("a", {**CLUSTERING, "use.clustering.interval": "1 hour", "use.optimization.type": "UnindexedFiles"})
    fake.tick()
    fake.tables.commit("a")
    fake.tick(10 * MINUTE)
    for _ in range(30):
        fake.tick(10 * MINUTE)
    assert _strategies(fake)[-1] == ("UnindexedFiles", "SizeTieredClustering")
    assert len(fake.engine.runs) <= 8


def _ended(run, how):
    if how == "conflict":
        raise ConcurrentChangeError("A writer was faster.")
    if how == "stop":
        run.request_stop("OUTSIDE_HOURS", "the hours have ended")
    return RunOutcome(None, totals=RunTotals(lease_held=how == "lease"), leaves_files=how == "files left")


@pytest.mark.parametrize(
    ("how", "minutes"), [("conflict", 10), ("stop", 10), ("lease", 1), ("limit", 10), ("files left", 24 * 60)]
)
def test_a_run_that_ends_early_does_not_wait_for_its_pace(how, minutes):
    fake = FakeService()
    fake.tables.put("a", {"use.compaction.interval": "1 day"})
    run = fake.engine.run
    fake.engine.run = lambda *arguments: _ended(arguments[0], how)
    fake.tick()
    fake.engine.run = run
    waited = 0
    while not fake.tick(MINUTE):
        waited += 1
    assert waited + 1 == minutes


def test_a_plan_without_groups_counts_for_the_pace_like_a_run():
    fake = FakeService()
    fake.tables.of_database = {"use.fleet.maxBytes": "100", "use.compaction.interval": "1 day"}
    fake.tables.put("spark_catalog.shop.a", {"use.index.columns": "x"})
    fake.engine.offers["spark_catalog.shop.a"] = (0, 0)
    for _ in range(2 * 24 * 6):
        fake.tables.commit("spark_catalog.shop.a")
        fake.tick(10 * MINUTE)
    assert len(fake.engine.appraised) == 2


def test_compaction_runs_after_commits_or_time():
    fake = FakeService()
    fake.tables.put("a", {"use.compaction.commits": "5", "use.compaction.interval": "2 hours"})
    fake.tick()
    for _ in range(5):
        fake.tables.commit("a")
    assert len(fake.tick(10 * MINUTE)) == 2
    fake.tables.commit("a")
    for _ in range(11):
        fake.tick(10 * MINUTE)
    assert len(fake.engine.runs) == 2
    fake.tick(10 * MINUTE)
    assert len(fake.engine.runs) == 3
