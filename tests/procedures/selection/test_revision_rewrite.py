"""``revision_rewrite => true``: files of older revisions join the newest one, and nothing else changes."""

import pytest
from placement import check_placement
from tables import NUMBERS, numbers

import sql_ext
from sql_ext import read_report


@pytest.fixture
def table(spark, new_table):
    """Revisions 1 (x, y) and 2 (id, x), a deletion vector in the first, and an unindexed file."""
    made = new_table(
        NUMBERS, index="x,y", cube_size=100, file_bytes="2kb", properties={"delta.enableDeletionVectors": "true"}
    )
    made.append(numbers(spark, 400)).index()
    made.sql("DELETE FROM {t} WHERE id % 50 = 0")
    made.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.columns'='id,x')")
    made.append(numbers(spark, 400, start=400)).index()
    return made.append(numbers(spark, 50, start=800))


def revisions(table):
    return {f.revision for f in table.files}


@pytest.mark.slow
def test_every_older_revision_runs_empty(table):
    before = table.checksum()
    assert revisions(table) == {0, 1, 2}
    planned = table.optimize(revision_rewrite=True, dry_run=True)[0]
    assert (planned.strategy, planned.reason) == ("RevisionRewrite", "REVISION_1")
    report = table.optimize(revision_rewrite=True)
    assert [r.reason for r in report if r.state == "committed"][:2] == ["REVISION_1", "REVISION_2"]
    assert "UNINDEXED" in {r.reason for r in report}
    assert report[0].rows == 392
    # ids below 400 were outside the space of revision 2, so that a third was made, into which the second went too.
    assert revisions(table) == {max(table.revisions)}
    assert table.checksum() == before
    assert check_placement(table) == 842
    version = table.version
    again = table.optimize(revision_rewrite=True)
    # A merge may wait for its budget of rewrites.
    assert {r.reason for r in again} <= {"NOTHING_TO_DO", "WRITE_AMPLIFICATION"}
    (alone,) = table.optimize(strategy="RevisionRewrite")
    assert alone.reason == "NOTHING_TO_DO"
    assert "no files of older revisions" in alone.message
    assert table.version == version
    sample = table.data.sample(0.05)
    assert read_report(sample).scans[0].pruned
    assert {r.id for r in sample.collect()} == {
        r.id for r in table.data.where(f"hash(id, x) < {int(0.05 * 4294967295 - 2147483648)}").collect()
    }


@pytest.mark.slow
def test_one_revision_in_batches(table):
    before = table.checksum()
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.columns'='y')")
    # The newest revision is not what the properties ask for any more: it may be left too.
    report = table.optimize(strategy="RevisionRewrite", revision_rewrite=True, revision_id=2, bytes_per_iter=1)
    assert {(r.strategy, r.reason, r.state) for r in report} == {("RevisionRewrite", "REVISION_2", "committed")}
    assert len(report) > 1
    assert {0, 1} < revisions(table)
    assert 2 not in revisions(table)
    assert table.checksum() == before
    assert check_placement(table) == 800


@pytest.mark.slow
@pytest.mark.parametrize("bytes_per_iter", [1, 10**9])
def test_the_newest_revision_is_laid_out_anew(spark, new_table, bytes_per_iter):
    """Whole or by parts, and each file once: the run ends although its own files are of the same revision."""
    table = new_table(NUMBERS, index="x,y", cube_size=100)
    # The ends of the space are there from the start, so that all files are of one revision.
    table.append(spark.sql("SELECT -1L id, 0D x, 0 y, '' s UNION ALL SELECT -2L, 1D, 999, ''")).index()
    for start in range(0, 300, 100):
        table.append(numbers(spark, 100, start=start)).index()
    assert set(table.revisions) == {0, 1}
    before, paths = table.checksum(), table.paths
    arguments = {"strategy": "RevisionRewrite", "revision_rewrite": True, "revision_id": 1}
    report = table.optimize(**arguments, bytes_per_iter=bytes_per_iter)
    assert sum(r.input_files for r in report if r.state == "committed") == len(paths)
    assert len(report) == (1 if bytes_per_iter > 1 else len(paths))
    assert not paths & table.paths
    assert table.checksum() == before
    assert check_placement(table) == 302


@pytest.mark.parametrize(("number", "code"), [(0, "USE_INVALID_ARGUMENT"), (9, "USE_UNKNOWN_REVISION")])
def test_refusals(spark, new_table, number, code):
    table = new_table(NUMBERS, index="x").append(numbers(spark, 10)).index()
    before = table.state()
    with pytest.raises(sql_ext.UseError) as refused:
        table.optimize(revision_rewrite=True, revision_id=number)
    assert refused.value.code == code
    assert table.state() == before
