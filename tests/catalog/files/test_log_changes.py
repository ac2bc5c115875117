"""The changes between two versions, read from the commits in between."""

import numpy as np
import pytest
from spark_jobs import at_most
from tables import NUMBERS, numbers

from catalog.errors import TooComplexError
from catalog.files import file_table, log_changes, version_files
from catalog.files.log_changes import changes_between, commits_since
from catalog.files.version_files import KeptTables
from catalog.jvm.table_state import TableState

COLUMNS = ("path", "size", "rows", "deletion_vector", "revision", "tier", "partition", "rewrites")


@pytest.fixture
def table(spark, new_table):
    made = new_table(NUMBERS, properties={"delta.enableDeletionVectors": "true"})
    for number in range(4):
        made.append(numbers(spark, 50, start=number * 50, partitions=1))
    return made


@pytest.mark.quick_sample(1)
@pytest.mark.parametrize("most_bytes", [log_changes.MAX_SHORT_BYTES, 0], ids=["in the driver", "by a job"])
def test_files_that_are_added_changed_and_removed(spark, table, monkeypatch, most_bytes):
    monkeypatch.setattr(log_changes, "MAX_SHORT_BYTES", most_bytes)
    version, before = table.version, {file.path: file for file in table.files}
    table.sql("DELETE FROM {t} WHERE id = 3")  # a deletion vector
    table.sql("DELETE FROM {t} WHERE id >= 50 AND id < 100")  # a file
    table.append(numbers(spark, 50, start=200, partitions=1))
    snapshot = table.managed.snapshot()
    changes = snapshot.version_files.changes_since(version)
    after = {file.path: file for file in table.files}
    same = {p for p in before if p in after and before[p].deletion_vector == after[p].deletion_vector}
    assert len(same) == 2
    assert changes.gone == (set(before) | set(after)) - same
    whole = {row.path: row for row in snapshot.file_rows.select(*COLUMNS).collect()}
    assert {row["path"]: row for row in changes.added.select(COLUMNS).to_pylist()} == {
        path: row.asDict() for path, row in whole.items() if path not in same
    }


def test_short_commits_are_read_without_a_spark_job(spark, table, monkeypatch):
    version = table.version
    table.sql("DELETE FROM {t} WHERE id = 3")
    table.append(numbers(spark, 50, start=200, partitions=1))
    snapshot = table.managed.snapshot()
    with at_most(spark, 0):
        in_driver = snapshot.version_files.changes_since(version, only_short=True)
    monkeypatch.setattr(log_changes, "MAX_SHORT_BYTES", 1000)
    assert snapshot.version_files.changes_since(version, only_short=True) is None
    by_job = snapshot.version_files.changes_since(version)
    assert in_driver.gone == by_job.gone
    assert in_driver.added.sort_by("path").to_pylist() == by_job.added.sort_by("path").to_pylist()
    assert len(by_job.added) == 2


def test_a_list_that_does_not_have_the_counted_files_is_read_anew(spark, table, monkeypatch):
    """Delta counts the files of most versions. A kept list of a log that was changed by hand is not used."""
    kept = KeptTables(10**9)
    monkeypatch.setattr(version_files, "_KEPT_TABLES", kept)
    before = table.managed.snapshot()
    files = before.file_table
    kept.put(before.version_files.key, files.where(files.path == files.path[0]))
    table.append(numbers(spark, 50, start=200, partitions=1))
    assert set(table.managed.snapshot().file_table.path) == table.paths


def test_commits_without_files(spark, table):
    version = table.version
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.logRetentionDuration' = 'interval 20 days')")
    changes = table.managed.snapshot().version_files.changes_since(version)
    assert (changes.gone, len(changes.added)) == (frozenset(), 0)


def test_too_many_commits_and_a_log_that_was_cleaned_up(table, monkeypatch):
    snapshot = table.managed.snapshot()
    assert snapshot.version_files.changes_since(snapshot.version) is None
    assert snapshot.version_files.changes_since(-1) is None
    assert snapshot.version_files.changes_since(1) is not None
    (table.path / "_delta_log" / f"{2:020d}.json").unlink()
    assert snapshot.version_files.changes_since(1) is None
    assert snapshot.version_files.changes_since(2) is not None
    monkeypatch.setattr(log_changes, "MAX_COMMITS", 1)
    assert snapshot.version_files.changes_since(2) is None


def test_a_commit_that_cannot_be_read(table):
    snapshot = table.managed.snapshot()
    commit = table.path / "_delta_log" / f"{snapshot.version:020d}.json"
    commit.write_text(commit.read_text() + '{"add": {"path": "x", "size": "large"')
    (commit.parent / f".{commit.name}.crc").unlink(missing_ok=True)
    assert snapshot.version_files.changes_since(snapshot.version - 1) is None


@pytest.mark.slow
@pytest.mark.parametrize("is_indexed", [True, False])
def test_a_list_that_follows_commits_is_the_list_of_the_version(spark, new_table, monkeypatch, is_indexed):
    """Appends, deletes, deletion vectors, an optimization and a new revision: column by column as if read anew."""
    properties = {"delta.enableDeletionVectors": "true", **({"use.index.columns": "x"} if is_indexed else {})}
    table = new_table(NUMBERS, properties=properties)
    kept = KeptTables(10**9)
    monkeypatch.setattr(version_files, "_KEPT_TABLES", kept)
    monkeypatch.setattr(version_files, "FOLLOWED_FILES", 0)
    followed = []
    monkeypatch.setattr(
        version_files, "changes_between", lambda *given: followed.append(changes := changes_between(*given)) or changes
    )
    steps = [
        lambda: table.append(numbers(spark, 50, start=0, partitions=1)),
        lambda: table.append(numbers(spark, 50, start=50, partitions=1)),
        table.index if is_indexed else lambda: table.append(numbers(spark, 50, start=400, partitions=1)),
        lambda: table.sql("DELETE FROM {t} WHERE id = 3"),
        lambda: table.append(numbers(spark, 50, start=100, partitions=1)),
        lambda: table.sql("DELETE FROM {t} WHERE id >= 50 AND id < 100"),
        lambda: table.optimize() if is_indexed else table.optimize(strategy="SizeTieredClustering"),
    ]
    for step in steps:
        step()
        current = table.managed.snapshot()
        found = current.file_table
        monkeypatch.setattr(version_files, "_KEPT_TABLES", KeptTables(0))
        anew = table.managed.snapshot().file_table
        monkeypatch.setattr(version_files, "_KEPT_TABLES", kept)
        kept.put(current.version_files.key, found)
        for name in ("path", "deletion_vector", "size", "rows", "revision", "tier", "rewrites", "partition", "deleted"):
            assert getattr(found, name).tolist() == getattr(anew, name).tolist(), name
        assert str((found.low.tolist(), found.high.tolist())) == str((anew.low.tolist(), anew.high.tolist()))
        assert [found.write_ids[n] for n in found.write] == [anew.write_ids[n] for n in anew.write]
        for name in ("file", "min_weight", "max_weight", "elements"):
            assert getattr(found.blocks, name).tolist() == getattr(anew.blocks, name).tolist(), name
        cubes = [[c.blocks.cube_ids[n] for n in c.blocks.cube] for c in (found, anew)]
        assert cubes[0] == cubes[1]
        assert found.levels.tolist() == anew.levels.tolist()
    assert len([changes for changes in followed if changes is not None]) >= 3


def test_more_files_than_are_compared(table, monkeypatch):
    monkeypatch.setattr(version_files, "_KEPT_TABLES", KeptTables(0))
    monkeypatch.setattr(file_table, "MAX_FILES", 3)
    with pytest.raises(TooComplexError, match=r"more than 3 files.*by where"):
        _ = table.managed.snapshot().file_table
    (row,) = table.optimize(strategy="SizeTieredClustering", where="id < 100", dry_run=True)
    assert row.reason == "NOTHING_TO_DO"


@pytest.mark.slow
def test_writes_and_runs_on_a_part_of_too_many_files(spark, new_table, monkeypatch):
    """An insert that is indexed, and a run with ``where``, need no list of all files."""
    table = new_table(NUMBERS, index="x", properties={"use.index.onWrite": "true"})
    for start in range(0, 200, 50):
        table.append(numbers(spark, 50, start=start, partitions=1))
    table.index()
    expected = table.managed.snapshot()
    monkeypatch.setattr(version_files, "_KEPT_TABLES", KeptTables(0))
    facts = expected.revision_ids_in_use, expected.unindexed_total, expected.cube_states(expected.latest_revision)
    monkeypatch.setattr(file_table, "MAX_FILES", 1)
    table.append(numbers(spark, 50, start=200, partitions=1))
    assert not table.unindexed
    now = table.managed.snapshot()
    assert now.file_table_if_few is None
    assert (now.revision_ids_in_use, now.unindexed_total) == facts[:2]
    assert now.cube_states(now.latest_revision).keys() >= facts[2].keys()
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.onWrite' = 'false')")
    table.append(numbers(spark, 50, start=1000, partitions=1))
    table.append(numbers(spark, 50, start=2000, partitions=1))
    before = table.checksum()
    with pytest.raises(TooComplexError):
        table.optimize(strategy="UnindexedFiles")
    rows = table.optimize(strategy="UnindexedFiles", where="id >= 1000 AND id < 2000")
    assert [row.input_files for row in rows if row.state == "committed"] == [1]
    assert len(table.unindexed) == 1
    assert table.checksum() == before


def test_the_list_of_files_beside_a_version_has_the_rows_that_a_job_reads(spark, table, monkeypatch):
    table.sql("DELETE FROM {t} WHERE id = 3")
    monkeypatch.setattr(version_files, "_KEPT_TABLES", KeptTables(10**9))
    with at_most(spark, 0):
        listed = table.managed.snapshot().file_table
    monkeypatch.setattr(version_files, "_KEPT_TABLES", KeptTables(10**9))
    monkeypatch.setattr(log_changes, "MAX_SHORT_BYTES", 100)
    read = table.managed.snapshot().file_table
    assert len(listed) == len(table.files)
    for name in (
        "path",
        "deletion_vector",
        "size",
        "rows",
        "revision",
        "low",
        "high",
        "first_time",
        "rewrites",
        "deleted",
    ):
        left, right = (getattr(files, name)[np.argsort(files.path)] for files in (listed, read))
        assert np.array_equal(left, right, equal_nan=left.dtype.kind == "f"), name


def test_a_list_beside_a_version_without_the_counted_files_is_not_used(table, monkeypatch):
    snapshot = table.managed.snapshot()
    lines = snapshot.state.listed().split("\n")
    monkeypatch.setattr(TableState, "listed", lambda _: "\n".join(lines[1:]))
    monkeypatch.setattr(version_files, "_KEPT_TABLES", KeptTables(10**9))
    assert len(table.managed.snapshot().file_table) == len(lines)


def test_commits_without_files_change_no_list(spark, table):
    snapshot = table.managed.snapshot()
    before = snapshot.file_table
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('a' = 'add')")
    newer = table.managed.snapshot()
    with at_most(spark, 0):
        changes = newer.version_files.changes_since(snapshot.version, only_short=True)
        assert newer.file_table is before
    assert (changes.gone, len(changes.added)) == (frozenset(), 0)


def test_commits_are_counted_without_loading_the_table(spark, new_table):
    table = new_table("id BIGINT")
    for _ in range(3):
        table.append(spark.range(2))
    place, newest = table.managed.location, table.version
    with at_most(spark, 0):
        assert commits_since(spark, place, "CREATE TABLE", -1, newest, 100) == 3
        assert commits_since(spark, place, "NOTHING", -1, newest, 2) == 2
    # Delta counts where a commit is gone.
    table.checkpoint()
    (table.path / "_delta_log" / f"{0:020d}.json").unlink()
    assert commits_since(spark, place, "NOTHING", -1, newest, 3) == 3
    assert commits_since(spark, place, "WRITE", 0, newest, 100) == 0
