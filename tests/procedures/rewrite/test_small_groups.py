"""Rewrites of few bytes: recent commits name their files, and no code is compiled to place their rows."""

import json
import shutil

import pytest
from spark_jobs import at_most

from catalog.errors import UseError
from catalog.jvm import session as sessions
from catalog.jvm.session import work_session

COLUMNS = "id bigint, b boolean, y tinyint, d double, n decimal(12,3), s string, t timestamp, day date, p binary"
VALUES = (
    "id",
    "id % 3 = 0 AS b",
    "CAST(id % 100 AS TINYINT) AS y",
    "CASE WHEN id % 50 = 0 THEN NULL WHEN id % 51 = 0 THEN double('NaN') ELSE sqrt(id) END AS d",
    "CAST(id * 7 % 1000 AS DECIMAL(12,3)) AS n",
    "IF(id % 40 = 0, NULL, concat('k', id * 31 % 97)) AS s",
    "timestamp_millis(id * 86400001) AS t",
    "date_add(DATE '1890-01-01', CAST(id AS INT) * 50) AS day",
    "CAST(CAST(id AS STRING) AS BINARY) AS p",
)
INDEX = "id,b,d,n:hashing,s:quantiles,t,day,y:quantiles"


@pytest.fixture
def compiled(spark, set_conf):
    """The session with the settings that Spark has by itself."""
    set_conf("spark.sql.codegen.wholeStage", "true")
    set_conf("spark.sql.codegen.factoryMode", "FALLBACK")
    return spark


@pytest.mark.slow
def test_rows_are_placed_alike_with_and_without_compiled_code(compiled, new_table, monkeypatch):
    spark = compiled
    files = []
    for few_bytes in (0, 10**9):
        monkeypatch.setattr(sessions, "_FEW_BYTES", few_bytes)
        table = new_table(COLUMNS, index=INDEX, cube_size=200, file_bytes=20_000)
        table.append(spark.range(0, 1500, 1, 1).selectExpr(*VALUES)).append(
            spark.range(1500, 3000, 1, 1).selectExpr(*VALUES)
        )
        before = table.checksum
        table.optimize()
        assert table.checksum == before
        # The check computes the cube and the weight of every row with compiled code.
        assert [row.severity for row in spark.sql(f"CALL use.check('{table.name}', deep => true)").collect()] == ["ok"]
        files.append([(file.rows, file.blocks, file.stats) for file in table.files])
    by_compiled, by_evaluated = (sorted(each, key=str) for each in files)
    assert len(by_compiled) > 2
    assert by_compiled == by_evaluated


def test_a_session_that_ignores_missing_files_loses_no_rows(spark, new_table, set_conf):
    """Without the rows of the file, the commit would remove it from the table."""
    table = new_table(COLUMNS, index=INDEX, cube_size=200, file_bytes=20_000)
    table.append(spark.range(0, 50, 1, 1).selectExpr(*VALUES)).append(spark.range(50, 90, 1, 1).selectExpr(*VALUES))
    before, lost = table.version, table.path / min(table.paths)
    lost.rename(lost.with_suffix(".away"))
    set_conf("spark.sql.files.ignoreMissingFiles", "true")
    set_conf("spark.sql.files.ignoreCorruptFiles", "true")
    with pytest.raises(UseError, match="FILE_NOT_EXIST"):
        table.optimize()
    assert table.version == before


@pytest.mark.parametrize("name", ["parquet.datetime", "legacy.parquet.datetime", "parquet.int96"])
def test_values_of_either_calendar_are_refused(spark, name):
    user = spark.newSession()
    user.conf.set(f"spark.sql.{name}RebaseModeInRead", "legacy")
    key = f"spark.sql.{name.removeprefix('legacy.')}RebaseModeInRead"
    assert work_session(user).conf.get(key) == "EXCEPTION"
    user.conf.set(key, "CORRECTED")
    assert work_session(user).conf.get(key) == "CORRECTED"


def test_code_is_compiled_for_more_than_a_few_bytes(compiled):
    for size, is_compiled in ((None, True), (1000, False), (10**7, True)):
        session = work_session(compiled, size)
        assert session.conf.get("spark.sql.codegen.wholeStage") == str(is_compiled).lower()
        assert session.conf.get("spark.sql.codegen.factoryMode") == ("FALLBACK" if is_compiled else "NO_CODEGEN")
    assert compiled.conf.get("spark.sql.codegen.wholeStage") == "true"


@pytest.fixture
def table(spark, new_table):
    made = new_table("id bigint", properties={"delta.enableDeletionVectors": "true"})
    for number in range(3):
        made.append(spark.range(100 * number, 100 * number + 100, 1, 1))
    return made


def live_of(table, identities):
    return table.managed.transaction(table.spark).replace_files(identities)


def vector_id(file):
    vector = file.deletion_vector
    return "" if vector is None else f"{vector['storageType']}{vector['pathOrInlineDv']}@{vector['offset']}"


def test_files_of_recent_commits_are_looked_up_without_a_job(spark, table):
    first, second, third = sorted(table.files, key=lambda file: file.modification_time)
    table.sql("DELETE FROM {t} WHERE id = 100")
    table.sql("DELETE FROM {t} WHERE id >= 200")
    (changed,) = (file for file in table.files if file.path == second.path)
    assert changed.deletion_vector is not None
    with at_most(spark, 0):
        assert live_of(table, [(first.path, ""), (changed.path, vector_id(changed))]) == 2
        # The deletion vector has changed since, and the file was removed.
        assert live_of(table, [(first.path, ""), (second.path, ""), (third.path, "")]) == 1


@pytest.mark.slow
def test_other_files_are_looked_up_by_a_job(table):
    first, *_ = sorted(table.files, key=lambda file: file.modification_time)
    for number in range(20):
        table.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('number' = '{number}')")
    assert live_of(table, [(first.path, "")]) == 1
    assert live_of(table, [(first.path, ""), ("no-such-file.parquet", "")]) == 1


def test_a_commit_that_the_log_no_longer_has(table):
    (file, *_) = table.files
    table.checkpoint()
    log = table.path / "_delta_log"
    for commit in sorted(log.glob("*.json"))[:-1]:
        shutil.move(commit, commit.with_suffix(".moved"))
    assert live_of(table, [(file.path, "")]) == 1


def test_a_removal_is_seen_in_another_spelling(table):
    first, second, *_ = sorted(table.files, key=lambda file: file.modification_time)
    removal = {"path": f"./{second.path}", "deletionTimestamp": 0, "dataChange": True}
    commit = table.path / "_delta_log" / f"{table.version + 1:020d}.json"
    commit.write_text(json.dumps({"remove": removal}))
    assert live_of(table, [(first.path, ""), (second.path, "")]) == 1
