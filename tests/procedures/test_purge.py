"""``purge``, ``protect``, and what time travel says about versions that were reclaimed."""

import time

import pytest
from fake_clock import FakeClock
from pyspark.errors import AnalysisException
from tables import checksum

import sql_ext
from procedures.application import Application, active

HOUR = 3_600_000
VECTORS = {"delta.enableDeletionVectors": "true"}


def purge(table, **given):
    return sql_ext.call(table.spark, "purge", table=table.name, **given).collect()


def protect(table, version, name):
    (row,) = sql_ext.call(table.spark, "protect", table=table.name, version=version, name=name).collect()
    return row


def at(table, version):
    return checksum(table.spark.sql(f"SELECT * FROM {table.name} VERSION AS OF {version}"))


def steps(rows):
    return {row.step: row for row in rows}


def later(hours):
    """The application of a process whose clock is ahead."""
    return active(Application(clock=FakeClock(time.time_ns() // 1_000_000 + hours * HOUR)))


def fill(table):
    """Four appends and three deletes; versions 1 to 7 have different rows."""
    for n in range(4):
        table.append(table.spark.range(n * 100, n * 100 + 100))
    for n in range(3):
        table.sql(f"DELETE FROM {{t}} WHERE id % 10 = {n}")
    return {version: at(table, version) for version in range(1, table.version + 1)}


def reclaimed(table, version):
    with pytest.raises(AnalysisException) as refused:
        at(table, version)
    assert refused.value.getCondition() == "USE_VERSION_RECLAIMED", str(refused.value)
    return str(refused.value)


def test_versions_before_the_limit_end_and_later_ones_stay(spark, new_table):
    table = new_table("id BIGINT", properties=VECTORS)
    rows = fill(table)
    planned = steps(purge(table, older_than=6, dry_run=True))
    assert table.version == 7
    done = steps(purge(table, older_than=6, force=True))
    assert (done["versions"].lost_from, done["versions"].lost_to, done["versions"].oldest_version) == (0, 5, 6)
    assert planned["versions"][3:6] == done["versions"][3:6]
    assert planned["files"][1:3] == done["files"][1:3]
    # A vector per file and delete; of them, those of the first delete are gone.
    assert done["files"].files > 0
    assert {version: at(table, version) for version in (6, 7)} == {version: rows[version] for version in (6, 7)}
    for version in range(6):
        assert "the oldest version left is 6" in reclaimed(table, version)
    with pytest.raises(AnalysisException, match="USE_VERSION_RECLAIMED"):
        spark.sql(f"SELECT * FROM {table.name} TIMESTAMP AS OF '2020-01-01'")
    with pytest.raises(AnalysisException, match="DELTA_"):
        at(table, 99)
    assert checksum(table.data) == rows[7]
    again = steps(purge(table, older_than=6, force=True))
    assert again["files"].files == 0
    assert again["versions"].lost_from is None


def test_a_protected_version_stays(new_table):
    table = new_table("id BIGINT", properties=VECTORS)
    rows = fill(table)
    row = protect(table, 4, "month-end")
    assert (row.name, row.version, row.bytes) == ("month-end", 4, 0)
    row = protect(table, 5, "v5.audit")
    assert row.files > 0
    assert row.bytes > 0
    assert "delta.logRetentionDuration" in row.message
    result = purge(table, older_than=7, force=True)
    assert [r.oldest_version for r in result if r.step == "protected"] == [4, 5]
    for version in (4, 5, 7):
        assert at(table, version) == rows[version]
    assert "5 (v5.audit)" in reclaimed(table, 6)
    with pytest.raises(sql_ext.UseError, match=r"'v5.audit' is used already \(version 5"):
        protect(table, 7, "v5.audit")
    with pytest.raises(sql_ext.UseError, match=r"Version 6 of .* was reclaimed"):
        protect(table, 6, "late")
    sql_ext.call(table.spark, "unprotect", table=table.name, name="v5.audit").collect()
    purge(table, older_than=7, force=True)
    reclaimed(table, 5)
    assert at(table, 4) == rows[4]
