"""``purge``, ``protect``, and what time travel says about versions that were reclaimed."""

import time
from datetime import datetime, timedelta, timezone

import pytest
from fake_clock import FakeClock
from pyspark.errors import AnalysisException
from tables import DeltaTable, checksum

import sql_ext
from catalog.state.lease import LEASE_FILE, LEASE_MILLIS, acquire
from catalog.state.protection import protections
from procedures.lifecycle.vacuum import vacuum_run
from procedures.process.application import Application, active

HOUR = 3_600_000
VECTORS = {"delta.enableDeletionVectors": "true"}


def purge(table, **given):
    return sql_ext.call(table.spark, "purge", table=table.name, **given).collect()


def protect(table, version, name):
    (row,) = sql_ext.call(table.spark, "protect", table=table.name, version=version, name=name).collect()
    return row


def put(file, text):
    """Writes a file as an editor would, without the checksum that Hadoop keeps beside it."""
    file.write_text(text)
    (file.parent / f".{file.name}.crc").unlink(missing_ok=True)


def at(table, version):
    return checksum(table.spark.sql(f"SELECT * FROM {table.name} VERSION AS OF {version}"))


def test_time_travel_by_name_needs_no_access_by_path(spark, new_table):
    table, session = new_table("id BIGINT"), spark.newSession()
    session.conf.set("spark.sql.runSQLOnFiles", "false")
    assert session.sql(f"SELECT * FROM {table.name} VERSION AS OF 0").count() == 0
    with pytest.raises(AnalysisException, match="Cannot time travel"):
        session.sql(f"SELECT * FROM {table.name} VERSION AS OF 9")


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


def test_versions_from_the_limit_on_stay(spark, new_table):
    """A deletion vector that is both made and replaced after the limit belongs to a version that stays."""
    table = new_table("id BIGINT", properties=VECTORS).append(spark.range(50))
    rows = {}
    for n in range(4):
        table.sql(f"DELETE FROM {{t}} WHERE id % 10 = {n}")
        rows[table.version] = at(table, table.version)
    done = steps(purge(table, older_than=3, force=True))
    assert (done["versions"].lost_to, done["versions"].oldest_version, done["files"].files) == (2, 3, 1)
    assert {version: at(table, version) for version in (3, 4, 5)} == {v: rows[v] for v in (3, 4, 5)}
    assert "the oldest version left is 3" in reclaimed(table, 2)


@pytest.mark.slow
def test_a_clone_of_a_version_without_its_files_is_refused(spark, new_table):
    """The log still has the version: Delta would commit the clone."""
    table = new_table("id BIGINT").append(spark.range(50))
    table.sql("DELETE FROM {t} WHERE id < 25")
    sql_ext.call(spark, "vacuum", table=table.name, retention_hours=0.0, force=True).collect()
    for source in (table.name, f"delta.`{table.path}`"):
        with pytest.raises(AnalysisException, match=r"USE_VERSION_RECLAIMED.*the oldest version left is"):
            spark.sql(f"CREATE TABLE default.cloned SHALLOW CLONE {source} VERSION AS OF 1")
    assert not spark.catalog.tableExists("default.cloned")
    existing = new_table("id BIGINT")
    spark.sql(f"CREATE TABLE IF NOT EXISTS {existing.name} SHALLOW CLONE {table.name} VERSION AS OF 1")
    assert existing.version == 0


def test_a_clone_asks_for_the_table_by_its_own_catalog(spark, new_table):
    """A table of that name in the session's catalog is another one."""
    table, session, jvm = new_table("id BIGINT"), spark._jsparkSession, spark._jvm
    delta = jvm.org.apache.spark.sql.delta
    names = spark.sparkContext._gateway.new_array(jvm.java.lang.String, 1)
    names[0], name = table.name.split(".")[-2:]
    identifier = jvm.org.apache.spark.sql.connector.catalog.Identifier.of(names, name)
    old = session.sessionState().catalogManager().catalog("spark_catalog").loadTable(identifier, "0")

    def check(entry):
        fields = (jvm.scala.Some(entry), old.tableIdentifier(), old.timeTravelOpt(), old.options())
        source = delta.commands.CloneDeltaSource(delta.catalog.DeltaTableV2(session, old.path(), *fields))
        jvm.io.usespark.ReclaimedVersions.checkClone(source)

    check(table.entry("spark_catalog"))
    with pytest.raises(AnalysisException, match=rf"unity\.default\.{name}"):
        check(table.entry("unity"))


@pytest.mark.slow
def test_plans_that_were_stored_since_the_version_stay(spark, new_table):
    table = new_table("id BIGINT").append(spark.range(50)).append(spark.range(50))
    (old,) = sql_ext.call(spark, "plan", table=table.name, columns="id", store=True).collect()
    table.append(spark.range(50))
    kept = table.version
    (new,) = sql_ext.call(spark, "plan", table=table.name, columns="id", store=True).collect()
    assert {r.plan_id for r in table.sql("SELECT plan_id FROM {t}.plans")} == {old.plan_id, new.plan_id}
    purge(table, older_than=kept, force=True)
    assert {r.plan_id for r in table.sql("SELECT plan_id FROM {t}.plans")} == {new.plan_id}


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_bad_input_touches_nothing(spark, new_table):
    table = new_table("id BIGINT", properties=VECTORS)
    for n in range(2):
        table.append(spark.range(n, n + 1))
    before, files = table.version, table.on_disk()
    future = datetime.now(timezone.utc) + timedelta(hours=1)
    for given, code, text in (
        (
            {"older_than": 3, "force": True},
            "USE_UNKNOWN_VERSION",
            "older_than = 3 does not exist: versions from 0 to 2 are",
        ),
        ({"older_than": -1, "force": True}, "USE_INVALID_ARGUMENT", "INTERVAL '3' DAY"),
        ({"older_than": "-1 days", "force": True}, "USE_INVALID_ARGUMENT", "INTERVAL '3' DAY"),
        ({"older_than": future, "force": True}, "USE_INVALID_ARGUMENT", "in the future"),
        ({"older_than": 2}, "USE_RETENTION_TOO_SHORT", "retention of 168 hours"),
        ({"older_than": "2 hours"}, "USE_RETENTION_TOO_SHORT", "force => true"),
        ({"older_than": timedelta(hours=167)}, "USE_RETENTION_TOO_SHORT", "dry_run => true"),
    ):
        with pytest.raises(sql_ext.UseError, match=text) as refused:
            purge(table, **given)
        assert refused.value.code == code, given
    for given, code in (
        ({"version": 3, "name": "a"}, "USE_UNKNOWN_VERSION"),
        ({"version": -1, "name": "a"}, "USE_INVALID_ARGUMENT"),
        ({"version": 1, "name": "../a"}, "USE_INVALID_ARGUMENT"),
        ({"version": 1, "name": ""}, "USE_INVALID_ARGUMENT"),
    ):
        with pytest.raises(sql_ext.UseError) as refused:
            protect(table, **given)
        assert refused.value.code == code, given
    protect(table, 1, "a")
    with pytest.raises(sql_ext.UseError, match=r"There is no protection 'b'\. Known: a"):
        sql_ext.call(spark, "unprotect", table=table.name, name="b")
    # Nobody knows what a damaged file protects.
    protection = table.path / "_use" / "protected" / "a.json"
    put(protection, '{"version": "one"}')
    for procedure, given in (("purge", {"older_than": 2}), ("vacuum", {"retention_hours": 0.0})):
        with pytest.raises(sql_ext.UseError, match=r"a\.json cannot be read") as refused:
            sql_ext.call(spark, procedure, table=table.name, force=True, **given)
        assert refused.value.code == "USE_PROTECTION_UNREADABLE"
    put(protection, '{"version": 99, "since": 1, "by": "me"}')
    with pytest.raises(sql_ext.UseError, match="is not in the log, which has versions 0 to 2"):
        purge(table, older_than=2, force=True)
    assert (table.version, table.on_disk()) == (before, files)
    put(protection, "")
    (row,) = sql_ext.call(spark, "unprotect", table=table.name, name="a").collect()
    assert row.version is None
    assert not protection.exists()


@pytest.mark.slow
def test_what_sql_binds(spark, new_table):
    table = new_table("id BIGINT")
    table.append(spark.range(3))
    for limit in (
        "INTERVAL '9' DAY",
        "INTERVAL '200:30' HOUR TO MINUTE",
        "'9 days'",
        "TIMESTAMP '2026-01-01 00:00:00'",
        "TIMESTAMP_NTZ '2026-01-01 00:00:00'",
        "DATE '2026-01-01'",
        "'2026-01-01 00:00:00 Europe/Madrid'",
        "0",
        "'0'",
        "NULL",
    ):
        rows = spark.sql(f"CALL use.purge('{table.name}', older_than => {limit})").collect()
        assert [row.step for row in rows] == ["compaction", "files", "log", "events", "versions"], limit
        assert rows[-1].lost_from is None
    for limit in ("INTERVAL '-1' DAY", "INTERVAL '1' MONTH", "1.5", "true", "TIMESTAMP '2100-01-01 00:00:00'"):
        with pytest.raises(AnalysisException, match=r"USE_INVALID_ARGUMENT.* a day-time interval above 0"):
            spark.sql(f"CALL use.purge('{table.name}', older_than => {limit}, force => true)")
    with pytest.raises(AnalysisException, match="USE_INVALID_ARGUMENT"):
        spark.sql(f"CALL use.optimize('{table.name}', max_duration => INTERVAL '1' DAY)")
    with pytest.raises(AnalysisException, match="USE_RETENTION_TOO_SHORT"):
        table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.retention.hours' = '24')")
    with pytest.raises(AnalysisException, match="USE_RETENTION_TOO_SHORT"):
        spark.sql(f"CREATE TABLE {table.name}x (a INT) USING delta TBLPROPERTIES ('use.retention.hours' = '24')")


@pytest.mark.slow
def test_files_of_a_shallow_clone_stay(spark, new_table):
    table = new_table("id BIGINT", properties=VECTORS)
    rows = fill(table)
    clone = f"{table.name}_clone"
    spark.sql(f"CREATE TABLE {clone} SHALLOW CLONE {table.name} VERSION AS OF 5")
    try:
        spark.sql(f"DELETE FROM {clone} WHERE id < 50")
        before = [checksum(spark.sql(f"SELECT * FROM {clone} VERSION AS OF {v}")) for v in (0, 1)]
        assert before[0] == rows[5]
        # The clone has the name of the folder as it was then.
        (link := table.path.with_name("link")).symlink_to(table.path)
        for name in (table.name, str(link)):
            planned = sql_ext.call(spark, "vacuum", table=name, retention_hours=0.0, dry_run=True).collect()
            assert [r.state for r in planned if r.reason == "CLONED"] == ["kept"]
        table.sql("DELETE FROM {t} WHERE id % 10 > 2")
        purge(table, older_than=table.version, force=True)
        assert [checksum(spark.sql(f"SELECT * FROM {clone} VERSION AS OF {v}")) for v in (0, 1)] == before
        # The log of the table goes on without them.
        reclaimed(table, 4)
    finally:
        spark.sql(f"DROP TABLE {clone}")
    done = sql_ext.call(spark, "vacuum", table=table.name, retention_hours=0.0, force=True).collect()
    assert "EXPIRED" in [row.reason for row in done]


@pytest.mark.slow
def test_history_that_nobody_can_reach_goes_with_time(spark, new_table):
    """What the service does in the end, on a clock that is ahead: rows, files, vectors, log and events."""
    table = new_table("id BIGINT", properties={**VECTORS, "use.retention.hours": "200"})
    rows = fill(table)
    for n in range(12):
        table.append(spark.range(1000 + n, 1001 + n))
    expected = checksum(table.data)
    sql_ext.call(spark, "vacuum", table=table.name).collect()
    assert list((table.path / "_use" / "events").glob("*.json"))
    assert steps(purge(table))["versions"].lost_from is None
    deleted = vectors(table)
    assert deleted
    with later(300):
        done = steps(purge(table))
        assert done["compaction"].files == len(deleted)
        assert vectors(table) == []
        # By this clock, all commits are older than the retention.
        newest = done["versions"].oldest_version
        assert newest == table.version - 2
        assert done["files"].files >= len(deleted)
        assert done["log"].files > 19
        assert done["events"].files > 0
    assert checksum(table.data) == expected == at(table, newest)
    assert {version for version in rows if "is" in reclaimed(table, version)} == set(rows)
    assert {file for file in table.on_disk() if "deletion_vector" in file} == set()
    assert not list((table.path / "_delta_log").glob(f"{newest - 1:020d}.*"))


@pytest.mark.slow
def test_a_protection_that_is_made_during_a_purge(new_table, monkeypatch):
    """It either keeps its version or fails, whichever of the two writes first."""
    table = new_table("id BIGINT", properties=VECTORS)
    rows = fill(table)
    real = vacuum_run.record_reclaimed

    def protect_before(*given):
        monkeypatch.setattr(vacuum_run, "record_reclaimed", real)
        protect(table, 5, "early")
        return real(*given)

    monkeypatch.setattr(vacuum_run, "record_reclaimed", protect_before)
    purge(table, older_than=6, force=True)
    assert at(table, 5) == rows[5]

    def protect_after(*given):
        monkeypatch.setattr(vacuum_run, "record_reclaimed", real)
        oldest = real(*given)
        with pytest.raises(sql_ext.UseError, match="was reclaimed"):
            protect(table, 6, "late")
        return oldest

    monkeypatch.setattr(vacuum_run, "record_reclaimed", protect_after)
    purge(table, older_than=7, force=True)
    reclaimed(table, 6)
    assert [p.name for p in protections(table.managed)] == ["early"]
    assert at(table, 5) == rows[5]


@pytest.mark.slow
def test_a_protection_that_is_made_after_the_table_was_replaced(spark, new_table, monkeypatch):
    """CREATE OR REPLACE gives the table another id while a vacuum deletes files of versions that went before."""
    table = new_table("id BIGINT")
    for first in (0, 100, 200):
        table.sql(f"INSERT OVERWRITE {{t}} SELECT id + {first} FROM range(10)")
    real = vacuum_run.record_reclaimed

    def replace_after(*given):
        monkeypatch.setattr(vacuum_run, "record_reclaimed", real)
        oldest = real(*given)
        table.sql("CREATE OR REPLACE TABLE {t} (id BIGINT) USING delta")
        with pytest.raises(sql_ext.UseError, match="was reclaimed"):
            protect(table, 1, "late")
        return oldest

    monkeypatch.setattr(vacuum_run, "record_reclaimed", replace_after)
    sql_ext.call(spark, "vacuum", table=table.name, retention_hours=0, force=True).collect()
    assert protections(table.managed) == ()
    # Versions of the new table are not concerned.
    protect(table, table.version, "kept")


class HeldLease(FakeClock):
    """A clock on which another run renews the lease of a table a number of times; later waits last until their end."""

    def __init__(self, table, time):
        super().__init__(time)
        self._table, self._expires_at = table, 0
        self.waits, self.renewals = 0, 10**9
        self._renew()

    def wait(self, event, seconds):
        if self.now() >= self._expires_at:
            return event.wait(60)
        self.waits += 1
        stopped = super().wait(event, seconds)
        if self.renewals and self.now() >= self._expires_at - 40_000:
            self._renew()
        return stopped

    def _renew(self):
        acquire(self._table, "other", "call", self.now())
        self.renewals, self._expires_at = self.renewals - 1, self.now() + LEASE_MILLIS


@pytest.mark.slow
def test_another_run_keeps_its_files(new_table):
    table = new_table("id BIGINT", properties=VECTORS)
    rows = fill(table)
    clock = HeldLease(table.managed, time.time_ns() // 1_000_000)
    with active(Application(clock=clock)):
        with pytest.raises(sql_ext.UseError, match="is being optimized by") as refused:
            purge(table, older_than=7, force=True)
        assert refused.value.code == "USE_CONCURRENT_CHANGE"
        assert at(table, 3) == rows[3]
        assert clock.waits == 60
        assert steps(purge(table, older_than=7, force=True, dry_run=True))["compaction"].files > 0
        # The other run ends while the purge waits.
        clock.waits, clock.renewals = 0, 3
        assert steps(purge(table, older_than=7, force=True))["compaction"].files > 0
        assert 0 < clock.waits < 60
    assert table.managed.read_state(LEASE_FILE) is None
    reclaimed(table, 3)


@pytest.mark.slow
def test_paths_that_nobody_would_choose(spark, tmp_path):
    """Paths are encoded in the log, and not in a listing; a mismatch would delete files of versions that stay."""
    table = DeltaTable(spark, f"delta.`{tmp_path / 'a b ä'}`")
    texts = "VALUES (0, 'a b'), (1, 'ä/c=1'), (2, '50%'), (3, NULL), (4, 'x:y'), (5, 'q%2Fq'), (6, 'a+b#?') AS t(id, p)"
    spark.sql(
        f"CREATE TABLE {table.name} (id INT, p STRING) USING delta PARTITIONED BY (p) "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', 'delta.enableChangeDataFeed' = 'true')"
    )
    for _ in range(2):
        table.sql(f"INSERT INTO {{t}} SELECT id + 10 * n AS id, p FROM {texts} CROSS JOIN range(3) AS r(n)")
        table.sql("UPDATE {t} SET id = id + 100 WHERE id % 20 < 10")
        table.sql("DELETE FROM {t} WHERE id % 10 < 4")
    table.sql("DELETE FROM {t} WHERE true")
    rows = {version: at(table, version) for version in range(1, table.version + 1)}
    files = len(table.on_disk())
    for keep in (2, 4, 6):
        purge(table, older_than=keep, force=True)
        for version in range(keep, 8):
            assert at(table, version) == rows[version], (keep, version)
        if keep > 2:
            reclaimed(table, keep - 2)
    assert len(table.on_disk()) < files


def vectors(table):
    """The deletion vectors of the newest version."""
    versions = table.managed.handle.versions(table.spark)
    return [row.deletion_vector for row in versions.files_with_deletes(versions.newest()).collect()]


@pytest.mark.slow
def test_the_change_data_of_the_oldest_version_that_stays(new_table):
    """Also where the log begins with it, so that a second purge ends no version."""
    table = new_table("id BIGINT", properties={"delta.enableChangeDataFeed": "true"})
    table.append(table.spark.range(100))
    for below in (10, 20):
        table.sql(f"UPDATE {{t}} SET id = id + 1000 WHERE id < {below}")
    version = table.version
    table.append(table.spark.range(100, 110))
    feed = f"table_changes('{table.name}', {version}, {version})"
    changed = checksum(table.spark.sql(f"SELECT id, _change_type FROM {feed}"))
    for _ in range(2):
        purge(table, older_than=str(version), force=True)
        assert checksum(table.spark.sql(f"SELECT id, _change_type FROM {feed}")) == changed
