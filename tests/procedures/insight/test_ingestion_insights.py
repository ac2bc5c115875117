"""``<table>.ingestion``: every number is computed again from the log by other code."""

import json
from datetime import datetime, timezone

import pytest
from service_fakes import FakeService
from tables import NUMBERS, numbers

from catalog.errors import InvalidArgumentError
from catalog.insights import commit_facts as facts_module
from catalog.insights.commit_rows import COLUMNS, StoredCommit, parse_commits
from catalog.insights.ingestion import INGESTION_FOLDER, ingestion_rows, record_commits
from catalog.properties.insight_properties import insights_policy
from procedures.process.application import application
from procedures.service.schedule import schedule_of

ENABLED = "use.insights.ingestion.enabled"
DAY = 86_400_000


@pytest.fixture(scope="module")
def table(spark, shared_table):
    """Appends, an indexing, an indexed append that overlaps, a delete with deletion vectors, and a checkpoint."""
    made = shared_table(NUMBERS, index="x,y", cube_size=300, file_bytes="12kb")
    made.append(numbers(spark, 2000), files=3)
    made.index()
    made.append(numbers(spark, 300, start=1000))
    made.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    made.sql("DELETE FROM {t} WHERE id % 97 = 0")
    made.append(numbers(spark, 50, start=5000))
    made.optimize(max_iterations=3)
    made.checkpoint()
    return made


def _box(add):
    stats = json.loads(add["stats"])
    return [(stats["minValues"].get(c), stats["maxValues"].get(c)) for c in ("x", "y")]


def _meets(one, other):
    sides = zip(_box(one), _box(other), strict=True)
    unknown = None
    return all(unknown in (a, b, c, d) or (a <= d and c <= b) for (a, b), (c, d) in sides)


def _expected(table):
    """The rows, read off the files of the log one after the other."""
    rows, live, seen, before = [], {}, set(), None
    for version in range(table.version + 1):
        info, removed = table.commit_info(version), set(table.removed(version))
        added = [a for a in table.added(version) if a["path"] not in removed | seen]
        blocks = [
            (a["tags"]["revision"], block["cubeId"])
            for a in added
            if "blocks" in (a.get("tags") or {})
            for block in json.loads(a["tags"]["blocks"])
        ]
        size = sum(a["size"] for a in added)
        earlier = [a for path, a in live.items() if path not in removed]
        unindexed = sum(a["size"] for a in added if "blocks" not in (a.get("tags") or {}))
        rows.append(
            {
                "version": version,
                "time": datetime.fromtimestamp(info["timestamp"] / 1000, timezone.utc),
                "writer": info["engineInfo"],
                "user_name": None,
                "operation": info["operation"],
                "data_change": any(a["dataChange"] for a in table.added(version)),
                "files_added": len(added),
                "bytes_added": size,
                "rows_added": sum(json.loads(a["stats"])["numRecords"] for a in added),
                "small_files": sum(a["size"] < 12 * 1024 // 2 for a in added),
                "unindexed_share": unindexed / size if size else None,
                "blocks_added": len(blocks),
                "cubes_touched": len(set(blocks)),
                "blocks_per_cube": len(blocks) / len(set(blocks)) if blocks else None,
                "overlap_share": sum(any(_meets(a, e) for e in earlier) for a in added) / len(added) if added else None,
                "interval_ms": None if before is None else info["timestamp"] - before,
            }
        )
        before = info["timestamp"]
        seen |= {a["path"] for a in added}
        live = {path: a for path, a in live.items() if path not in removed}
        live |= {a["path"]: a for a in table.added(version)}
    return rows[::-1]


def _read(table):
    rows = table.sql("SELECT * FROM {t}.ingestion ORDER BY version DESC")
    return [{**row.asDict(), "time": row.time.astimezone(timezone.utc)} for row in rows]


def test_each_number_is_that_of_the_log(table):
    expected = _expected(table)
    assert sum(row["blocks_added"] > 0 for row in expected) >= 2
    assert {row["overlap_share"] for row in expected} > {0.0, 1.0}
    shown = _read(table)
    assert [tuple(row) for row in shown] == [COLUMNS] * len(expected)
    for have, want in zip(shown, expected, strict=True):
        assert have == want
    everywhere = table.spark.sql(
        f"SELECT * FROM use_catalog.system_lake_tables.ingestion WHERE `table` LIKE '%{table.name}'"
    )
    rows = sorted(everywhere.collect(), key=lambda row: -row.version)
    assert [row.version for row in rows] == [row["version"] for row in expected]
    assert all(row.error is None for row in rows)


@pytest.mark.slow
def test_rows_outlast_the_log_once_they_are_kept(spark, new_table):
    made = (
        new_table(NUMBERS, index="x,y", cube_size=300, file_bytes="12kb").append(numbers(spark, 400), files=2).index()
    )
    before = _read(made)
    assert record_commits(made.managed, 365 * DAY, now=0) == len(before)
    assert record_commits(made.managed, 365 * DAY, now=0) == 0
    made.append(numbers(spark, 100)).checkpoint()
    whole = _read(made)
    # What Delta's cleanup of the log does.
    for version in range(made.version):
        (made.path / "_delta_log" / f"{version:020d}.json").unlink()
    spark.catalog.clearCache()
    rows = _read(made)
    assert [row["version"] for row in rows] == [row["version"] for row in whole]
    assert rows[1:] == whole[1:] == before
    assert rows[0] == whole[0]
    assert record_commits(made.managed, 365 * DAY, now=0) == 1
    # Without the row before it, the log does not tell the interval; old rows are deleted as a file.
    newest = int(rows[0]["time"].timestamp() * 1000)
    assert record_commits(made.managed, DAY, now=newest + DAY + 1000) == 0
    assert made.managed.list_state(INGESTION_FOLDER) == []
    (left,) = _read(made)
    assert left == {**rows[0], "interval_ms": None}


@pytest.mark.slow
def test_the_number_of_spark_jobs_does_not_depend_on_commits(spark, new_table):
    made = new_table(NUMBERS, index="x,y", cube_size=300, file_bytes="12kb").append(numbers(spark, 400)).index()
    log = made.path / "_delta_log"
    template = made.actions(1)
    first = made.version + 1
    for version in range(first, first + 1500):
        lines = [a for a in template if "commitInfo" in a]
        add = next(a["add"] for a in made.actions(first - 1) if "add" in a)
        lines.append({"add": {**add, "path": f"part-{version}.parquet"}})
        (log / f"{version:020d}.json").write_text("\n".join(map(json.dumps, lines)))
    made.managed.snapshot()
    tracker = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup("ingestion", "test")
    rows = ingestion_rows(made.managed)
    assert len(rows) == first + 1500
    assert rows[0].overlap_share == 1.0
    assert len(tracker.getJobIdsForGroup("ingestion")) <= 4
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


def test_ranges_are_compared_for_the_newest_commits_only_if_there_are_many_files(table, monkeypatch):
    from catalog.insights import ingestion

    newest = next(row for row in ingestion_rows(table.managed) if row.files_added)
    monkeypatch.setattr(
        ingestion,
        "MAX_FILE_ACTIONS",
        1
        + facts_module.commit_facts(table.managed.snapshot(), newest.version)
        .agg({"file_actions": "sum"})
        .collect()[0][0],
    )
    rows = ingestion_rows(table.managed)
    assert [row for row in rows if row.version == newest.version] == [newest]
    assert all(row.overlap_share is None for row in rows if row.version < newest.version - 1)


# ---------------------------------------------------------------------------------------------------- without Spark


@pytest.fixture
def fake():
    yield FakeService()
    for known in application().automations.all():
        application().automations.remove(known.location)


def test_the_service_keeps_rows_while_the_property_is_set(fake):
    place = fake.tables.put("t", {ENABLED: "true"})
    fake.tick()
    assert (fake.engine.runs, fake.engine.recorded) == ([], ["t"])
    (state,) = application().automations.all()
    assert (state.strategies, state.last_error) == (("Insights",), None)
    fake.tick(3_600_000)
    assert fake.engine.recorded == ["t", "t"]
    fake.tables.versions[place] += 1_000
    fake.tick(3_000_000)
    assert fake.engine.recorded == ["t", "t", "t"]
    fake.tables.put("t", {ENABLED: "false"}, place)
    fake.tick(3_600_000)
    assert (application().automations.all(), len(fake.engine.recorded)) == ([], 3)


def test_rows_are_kept_before_history_is_reclaimed():
    asked = {ENABLED: "true", "use.retention.hours": "1", "use.log.consolidation.commits": "1"}
    assert schedule_of(asked).maintenance == ("Insights", "Reclamation", "LogConsolidation")


def test_what_the_properties_mean():
    assert insights_policy({}) is None
    policy = insights_policy({ENABLED: "TRUE", "use.insights.ingestion.days": "3"})
    assert policy.keep_commits_millis == 3 * DAY
    for key, text in ((ENABLED, "yes"), ("use.insights.ingestion.days", "0")):
        with pytest.raises(InvalidArgumentError, match=key):
            insights_policy({key: text})


def test_lines_that_cannot_be_read_are_refused():
    line = '{"table_id":"a","version":1,"time":2,"data_change":true,"files_added":0,"bytes_added":0,"small_files":0,'
    line += '"unindexed_bytes":0,"blocks_added":0,"cubes_touched":0}'
    (commit,) = parse_commits(line)
    assert StoredCommit.of("a", commit.row).row.rows_added is None
    for broken in ("", "{}", line.replace("true", "1"), line.replace('"version":1', '"version":-1'), f"{line}\n["):
        assert not isinstance(parse_commits(broken), list)
