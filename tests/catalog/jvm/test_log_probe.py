"""Looks at the logs of tables: what they find without Delta, and tables that do not answer."""

import shutil
import time

import pytest
from spark_jobs import at_most

from catalog.jvm.log_probe import Question, look

LIMIT = 0.5


def the_look(spark, *question):
    (sighting,) = look(spark, [Question(*question)])
    return sighting


def test_a_look_finds_what_delta_finds(spark, new_table):
    table = new_table("id BIGINT, day DATE", index="id", properties={"use.fleet.enabled": "true", "of": "others"})
    table.append(spark.range(5).selectExpr("id", "DATE'2026-01-01' day"))
    log, place = table.path / "_delta_log", table.managed.location
    with at_most(spark, 0):
        short = the_look(spark, place)
    assert (short.state, short.version, short.columns) == ("changed", table.version, ["id", "day"])
    assert short.configuration["use.fleet.enabled"] == "true"
    assert "of" not in short.configuration
    assert short.modified == (log / f"{table.version:020d}.json").stat().st_mtime_ns // 1_000_000
    # Writers other than Spark leave no checksums.
    for file in log.glob("*.crc"):
        file.unlink()
    assert the_look(spark, place) == short
    table.checkpoint()
    (log / f"{0:020d}.json").unlink()
    assert the_look(spark, place) == short
    with at_most(spark, 0):
        assert the_look(spark, place, table.version).state == "unchanged"
        assert the_look(spark, place, table.version, short.modified).state == "unchanged"


def test_commits_of_others(spark, new_table):
    table = new_table("id BIGINT")
    place, before = table.managed.location, the_look(spark, table.managed.location)
    for _ in range(3):
        table.append(spark.range(2))
    spark.sql(f"ALTER TABLE {table.name} SET TBLPROPERTIES ('use.index.columns' = 'id')")
    after = the_look(spark, place, before.version)
    assert (after.version, after.table_id) == (table.version, before.table_id)
    assert after.configuration["use.index.columns"] == "id"


def test_another_table_at_the_same_place(spark, tmp_path):
    place = str(tmp_path / "t")
    for _ in range(3):
        spark.range(1).write.format("delta").mode("append").save(place)
    before = the_look(spark, place)
    shutil.rmtree(place)
    missing = the_look(spark, place, before.version, before.modified)
    assert missing.state == "missing"
    spark.range(1).write.format("delta").save(place)
    # Its log is shorter, so that the next version tells nothing.
    assert the_look(spark, place, before.version).state == "unchanged"
    after = the_look(spark, place, before.version, before.modified)
    assert (after.state, after.version, after.table_id != before.table_id) == ("changed", 0, True)


@pytest.fixture
def silent(spark):
    """The switch that keeps a file system from answering."""
    switch = spark._jvm.io.usespark.testing.DenyingFileSystem
    yield switch.beSilent
    switch.beSilent(None)


def tables_of_other_file_system(folder, pattern, names):
    for name in names:
        shutil.copytree(pattern.path, folder / name)
    return [f"deny://{folder}/{name}" for name in names]


def test_a_table_that_does_not_answer_holds_up_no_other(spark, new_table, tmp_path, silent):
    near = new_table("id BIGINT")
    hanging, far = tables_of_other_file_system(tmp_path, near, ["hanging", "far"])
    questions = [Question(place, 0) for place in (hanging, far, near.managed.location)]
    silent("hanging")
    sightings = look(spark, questions, LIMIT)
    assert [sighting.state for sighting in sightings] == ["failed", "unchanged", "unchanged"]
    assert sightings[0].detail.startswith("no answer within ")
    # An odd location is the failure of its table alone.
    odd, fine = look(spark, [Question("file:relative"), questions[2]])
    assert (odd.state, fine.state) == ("failed", "unchanged")
    # It is not asked again, and nothing waits for it.
    (again, *_) = look(spark, questions, 60)
    assert (again.state, again.detail) == ("failed", "an earlier look at it has not ended")
    silent(None)
    assert {s.state for s in _until_all_answer(spark, questions)} == {"unchanged"}


def test_a_file_system_that_does_not_answer_holds_up_no_other(spark, new_table, tmp_path, silent):
    near = new_table("id BIGINT")
    far = tables_of_other_file_system(tmp_path, near, [f"t{number}" for number in range(20)])
    questions = [Question(place, 0) for place in (*far, near.managed.location)]
    silent("/t")
    for limit in (LIMIT, 60):
        states = [sighting.state for sighting in look(spark, questions, limit)]
        # Each of its threads hangs at a table, and the other tables do not wait for one.
        assert (states.count("failed"), states.count("late"), states[-1]) == (16, 4, "unchanged")
    silent(None)
    assert {s.state for s in _until_all_answer(spark, questions)} == {"unchanged"}


def _until_all_answer(spark, questions):
    """The threads that waited end by themselves, a moment after the file system answers."""
    end = time.monotonic() + 60
    while True:
        sightings = look(spark, questions)
        if all(s.state not in ("failed", "late") for s in sightings) or time.monotonic() > end:
            return sightings
