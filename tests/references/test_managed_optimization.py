"""Managed optimization of an indexed table, sentence by sentence (reference A)."""

import threading

import pytest
from listed_tables import ROOT, choice, chosen, cube, file, rewritten, unindexed
from pyspark.errors import AnalysisException
from service_fakes import MINUTE, FakeService

from otree.level import level_of
from procedures.process.application import application
from procedures.selection import built_in_strategies
from procedures.service.schedule import Schedule, schedule_of
from procedures.service.service_settings import OPTIMIZATION_INTERVAL

A, B = cube(0), cube(1)
AA = cube(0, 0)
CONTINUOUS = {"use.optimization.type": "CubeDefragmentation", "use.optimization.bytes-per-iter": "5000000"}


@pytest.fixture(autouse=True)
def _no_automation_stays():
    yield
    for known in application().automations.all():
        application().automations.remove(known.location)


# ------------------------------------------------------------------------------------- 1. why levels


def test_each_iteration_lifts_a_file_by_an_order_of_magnitude():
    files = [file(f"f{n}", {cube(n % 4): 3 + n % 5}) for n in range(40)]
    iterations = 0
    while group := choice(files, "LeveledCompaction"):
        (written,) = rewritten(files, group)[-1:]
        largest = max(rows for _, _, _, rows in written.blocks)
        assert level_of(largest) > min(f.level for f in group.files)
        files = rewritten(files, group)
        iterations += 1
    # Each of the four cubes was merged, and nothing is fragmented any more.
    assert (iterations, len(files)) == (4, 4)


# ------------------------------------------------------------------------------------- 2. file level


@pytest.mark.parametrize(
    ("rows", "level"),
    [(1, 0), (9, 0), (10, 1), (99, 1), (100, 2), (999, 2), (1_000, 3), (9_999, 3), (10_000, 4), (99_999, 4)],
)
def test_the_level_is_the_logarithm_of_the_largest_block(rows, level):
    # The file with one block more is of the same level, and the two blocks of B rise.
    files = [file("f0", {A: rows, B: 5 * 10**level}), file("f1", {A: rows, B: 5 * 10**level})]
    group = choice(files, "LeveledCompaction")
    assert {f.level for f in group.files} == {level}
    assert level_of(rows) == level


# ------------------------------------------------------------------------------------- 3. block groups


def test_blocks_of_the_files_of_a_level_are_grouped_by_cube():
    files = [file("a", {A: 5}), file("b", {B: 5}), file("c", {A: 5}), file("another level", {A: 50})]
    assert chosen(files, "LeveledCompaction") == ["a", "c"]


def test_a_group_that_could_not_make_a_block_of_the_next_level_is_dropped():
    assert chosen([file("a", {A: 5}), file("b", {A: 4})], "LeveledCompaction") == []
    assert chosen([file("a", {A: 50}), file("b", {A: 49})], "CubeDefragmentation") == []
    assert chosen([file("a", {A: 50}), file("b", {A: 50})], "CubeDefragmentation") == ["a", "b"]


# ------------------------------------------------------------------------------------- 4. order of CubeDefragmentation


def test_defragmentation_takes_the_lowest_level_first_and_then_the_lowest_depth():
    files = [
        *(file(f"level 1 {n}", {ROOT: 60}) for n in (1, 2)),
        *(file(f"deep {n}", {AA: 6}) for n in (1, 2)),
        *(file(f"high {n}", {A: 6}) for n in (1, 2)),
    ]
    order = ["high 1", "high 2", "deep 1", "deep 2", "level 1 1", "level 1 2"]
    assert chosen(files, "CubeDefragmentation") == order


def test_defragmentation_takes_files_one_after_another_until_the_byte_threshold():
    files = [file(f"{name} {n}", {cube_id: 6}) for name, cube_id in (("a", A), ("b", B)) for n in (1, 2)]
    assert chosen(files, "CubeDefragmentation", bytes_per_iter=20) == ["a 1", "a 2"]
    assert chosen(files, "CubeDefragmentation", bytes_per_iter=31) == ["a 1", "a 2", "b 1", "b 2"]


# ------------------------------------------------------------------------------------- 6. events


def test_an_optimization_writes_one_event_with_its_commit(indexed):
    (event,) = indexed.sql("SELECT * FROM {t}.optimizations")
    assert (event.optimization_name, event.revision_id) == ("UnindexedFiles", 1)
    assert event.process_time_ms == event.finished_at - event.started_at
    assert event.output_files_stats.files == [a["path"] for a in indexed.added(event.version)]
    assert event.input_files_stats.file_levels == [-1] * event.input_files_stats.num_files
    assert event.output_files_stats.element_count == 1500
    assert "event" in indexed.commit_info(event.version)["operationParameters"]


# ------------------------------------------------------------------------------------- 8. properties


def test_the_interval_is_any_time_of_spark_and_ten_minutes_by_default():
    assert OPTIMIZATION_INTERVAL.name == "spark.qbeast.use.optimization-interval"
    assert OPTIMIZATION_INTERVAL.default == "10 minutes"
    for text, seconds in (("10 minutes", 600), ("90s", 90), ("1h", 3600)):
        assert OPTIMIZATION_INTERVAL.parse(text) == seconds * 1000


def test_the_properties_have_the_defaults_of_the_reference():
    arguments = Schedule.of_table({"use.optimization.type": "CubeDefragmentation"}).arguments
    assert (arguments["revision_rewrite"], arguments["revision_id"]) == (False, None)
    settings = Schedule.of_table({"use.optimization.type": "CubeDefragmentation"}).settings()
    assert settings.selection["CubeDefragmentation"].bytes_per_iter == 1_000_000_000


def test_revision_rewrite_rewrites_all_files_of_the_revision():
    asked = {"use.optimization.type": "CubeDefragmentation", "use.optimization.revision-rewrite": "true"}
    settings = Schedule.of_table(asked).settings()
    assert [s.name for s in settings.strategies] == ["RevisionRewrite", "CubeDefragmentation"]


# FileList takes files that only a call can name.
@pytest.mark.parametrize("name", [s.name for s in built_in_strategies() if s.name != "FileList"])
def test_the_type_is_the_name_of_any_strategy(name):
    options = {
        "SamplingOverheadReduction": {"use.optimization.fraction": "0.1"},
        "LatestRowCompaction": {"use.optimization.primary-key": "a", "use.optimization.order-by": "b"},
    }
    schedule = schedule_of({"use.optimization.type": name, **options.get(name, {})})
    assert isinstance(schedule, Schedule)
    assert schedule.strategies == (name,)


def test_set_show_and_unset(spark, indexed):
    pairs = ",".join(f"'{key}'='{value}'" for key, value in CONTINUOUS.items())
    indexed.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES({pairs})")
    shown = {row.key: row.value for row in indexed.sql("SHOW TBLPROPERTIES {t}")}
    assert CONTINUOUS.items() <= shown.items()
    # 12. The tables that are, or are scheduled to be, optimized.
    scheduled = "SELECT name FROM use_catalog.system_lake_tables.metastore_summary WHERE "
    scheduled += "table_properties['use.optimization.type'] is not null"
    assert [row.name for row in spark.sql(scheduled).collect()] == ["reference"]
    indexed.sql("ALTER TABLE {t} UNSET TBLPROPERTIES('use.optimization.type','use.optimization.bytes-per-iter')")
    assert not CONTINUOUS.keys() & {row.key for row in indexed.sql("SHOW TBLPROPERTIES {t}")}
    assert spark.sql(scheduled).collect() == []


# ------------------------------------------------------------------------------------- 9. manual trigger


def test_the_same_set_on_use_catalog_triggers_one_run_and_changes_no_property(spark, indexed):
    before, version = indexed.sql("SHOW TBLPROPERTIES {t}"), indexed.version
    place = f"use_catalog.spark_catalog.{indexed.name}"
    spark.sql(
        f"ALTER TABLE {place} SET TBLPROPERTIES('use.optimization.type'='LeveledCompaction',"
        "'use.optimization.bytes-per-iter'='5000000')"
    )
    for thread in threading.enumerate():
        if thread.name.startswith("use-optimize-"):
            thread.join(120)
    assert indexed.sql("SHOW TBLPROPERTIES {t}") == before
    triggered = spark.sql(f"SELECT * FROM {place}.optimizations WHERE trigger = 'manual'").collect()
    # A fresh index has no fragmented cube: the run has found nothing, and says so.
    assert [(row.optimization_name, row.reason) for row in triggered] == [("LeveledCompaction", "NOTHING_TO_DO")]
    assert indexed.version == version
    with pytest.raises(AnalysisException, match="USE_NOT_SUPPORTED"):
        spark.sql(f"ALTER TABLE {place} UNSET TBLPROPERTIES('use.optimization.type')")


# ------------------------------------------------------------------------------------- 10, 11. execution and changes


def test_a_table_with_optimization_configured_is_optimized_every_interval():
    fake = FakeService()
    fake.tables.put("managed", CONTINUOUS)
    fake.tables.put("unmanaged", {})
    assert fake.tick() == ["managed"]
    fake.tables.commit("managed")
    assert fake.tick(9 * MINUTE) == ["managed"]
    assert fake.tick(MINUTE) == ["managed", "managed"]


def test_unset_properties_end_the_run_and_stop_the_optimization():
    fake = FakeService(at_once=False)
    fake.tables.put("t", CONTINUOUS)
    fake.tick()
    fake.tables.put("t", {})
    fake.tick(MINUTE)
    stopped = []
    fake.engine.during = lambda run: stopped.append(run.stop_reason.code)
    fake.threads.run_all()
    assert stopped == ["PROPERTIES_UNSET"]
    assert not application().automations.all()


def test_changed_parameters_wait_for_a_run_and_start_a_new_schedule():
    fake = FakeService(at_once=False)
    fake.tables.put("t", CONTINUOUS)
    fake.tick()
    fake.tables.put("t", {"use.optimization.type": "LeveledCompaction"})
    fake.tick(MINUTE)
    fake.threads.run_all()
    assert [strategies for _, strategies, _ in fake.engine.runs] == [("CubeDefragmentation",)]
    fake.tick()
    fake.threads.run_all()
    assert fake.engine.runs[-1][1] == ("LeveledCompaction",)


# ------------------------------------------------------------------------------------- 12. looking


def test_optimizations_has_the_schema_of_the_event(spark, indexed):
    name = indexed.name.removeprefix("default.")
    rows = spark.sql(f"SELECT * FROM use_catalog.spark_catalog.default.{name}.optimizations")
    stats = (
        "struct<files:array<string>,file_levels:array<bigint>,element_count:bigint,bytes:bigint,num_files:bigint,"
        "num_cubes:bigint,num_blocks:bigint,avg_num_blocks_per_file:double,avg_block_element_count_per_file:double>"
    )
    assert rows.dtypes[:9] == [
        ("optimization_name", "string"),
        ("write_id", "string"),
        ("table_id", "string"),
        ("revision_id", "bigint"),
        ("started_at", "bigint"),
        ("finished_at", "bigint"),
        ("process_time_ms", "bigint"),
        ("input_files_stats", stats),
        ("output_files_stats", stats),
    ]


def test_files_of_plain_writers_are_no_blocks():
    assert chosen([unindexed("a"), unindexed("b")], "CubeDefragmentation") == []
