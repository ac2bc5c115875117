"""StepConsolidation: its groups without Spark, and its rewrites of plain, unindexed and indexed files."""

import re
from dataclasses import replace

import numpy as np
import pytest
from file_lists import file_table
from listed_tables import table_files, unindexed
from placement import check_placement
from pyspark.sql import functions as F
from staging import settings_of
from tables import NUMBERS, numbers

import sql_ext
from catalog.files.arrays import UNKNOWN
from otree.weight import MAX_WEIGHT, MIN_WEIGHT, weight_of
from procedures.groups.group import Concatenate
from procedures.groups.strategy import RunSoFar
from procedures.selection import strategy
from procedures.selection.file_places import Place, places, without_ranges
from procedures.selection.named_files import check_one_place, named_groups
from procedures.selection.step_consolidation import groups_of
from procedures.selection.step_runs import StepPolicy

STEPS = "StepConsolidation"
VECTORS = {"delta.enableDeletionVectors": "true"}
ALL = (MIN_WEIGHT, MAX_WEIGHT + 1)


def _candidates(count, **columns):
    """Files f0, f1 and so on of 10 bytes and 5 rows."""
    return without_ranges(file_table(count, **columns))


def _paths(groups):
    return [[run.paths for run in group.runs] for group in groups]


def test_partitions_and_revisions_are_commits_of_their_own():
    files = _candidates(8, partition=["a", "b", "a", "b"] * 2, revision=[0] * 4 + [3] * 4)
    groups = list(groups_of(files, StepPolicy(), 10**9))
    assert [(g.revision_id, _paths([g])) for g in groups] == [
        (0, [[("f0", "f2")]]), (0, [[("f1", "f3")]]), (3, [[("f4", "f6")]]), (3, [[("f5", "f7")]]),
    ]  # fmt: skip


def test_files_of_another_band_stay_in_files_of_their_own():
    whole, half, fifth, tenth = MAX_WEIGHT + 1, *map(weight_of, (0.5, 0.2, 0.1))
    bands = [
        # The lowest band, which begins wherever its smallest weight happens to be.
        (MIN_WEIGHT + 5, tenth),
        (MIN_WEIGHT + 10**6, tenth - 7),
        # The band above it, and finer ones within.
        (tenth, whole),
        (tenth + 3, whole - 2),
        (half + 1, whole),
        (fifth, half),
        (fifth + 9, half - 9),
        # All weights, and unknown ones.
        (MIN_WEIGHT, whole - 9),
        (UNKNOWN, UNKNOWN),
    ]
    files = _candidates(9, revision=[2] * 9, band_first=[b[0] for b in bands], band_end=[b[1] for b in bands])
    assert {place.band: positions.tolist() for place, positions in places(files, ())} == {
        (MIN_WEIGHT, tenth): [0, 1],
        (tenth, whole): [2, 3],
        (half, whole): [4],
        (fifth, half): [5, 6],
        ALL: [7, 8],
    }
    (group,) = groups_of(files, StepPolicy(), 10**9)
    assert sorted(run.paths for run in group.runs) == [("f0", "f1"), ("f2", "f3"), ("f5", "f6"), ("f7", "f8")]


def test_unindexed_files_have_one_place_whatever_their_tags_say():
    files = _candidates(2, band_first=[5, MIN_WEIGHT], band_end=[9, 0])
    assert [place for place, _ in places(files, ())] == [Place(0, "", ALL)]


def test_files_without_rows_are_removed_first_and_not_read():
    files = _candidates(5, rows=[5, 0, 5, 0, UNKNOWN])
    removal, merge = groups_of(files, StepPolicy(), 10**9, (), 168.0)
    assert ([f.path for f in removal.files], removal.runs, removal.reason) == (["f1", "f3"], (), "NO_ROWS_2")
    assert "168 hours" in removal.note
    assert _paths([merge]) == [[("f0", "f2", "f4")]]


def test_groups_end_at_their_bytes_and_keep_the_highest_tier():
    files = _candidates(8, tier=[0, 3, 0, 0, 0, 0, 0, 0])
    groups = list(groups_of(files, StepPolicy(max_bytes=20), 40))
    assert _paths(groups) == [[("f0", "f1"), ("f2", "f3")], [("f4", "f5"), ("f6", "f7")]]
    assert [run.tier for run in groups[0].runs] == [3, None]


def test_steps_are_counted_over_all_looks_of_a_run():
    """After a conflict only the files of the failed groups are planned, and after commits none."""
    files = [unindexed(f"f{n}", time=n) for n in range(6)]
    first = table_files(files)
    asked = settings_of(strategy=STEPS, options={"steps": "2", "step_max_files": "2"}).selection[STEPS]

    def planned(failed=frozenset(), run_begins=False):
        run = RunSoFar() if run_begins else RunSoFar(first, failed)
        findings = strategy(STEPS).groups(replace(first, run=run), asked)
        return _paths(finding for finding in findings if isinstance(finding, Concatenate))

    assert planned(run_begins=True) == [[("f0", "f1"), ("f2", "f3")]]
    assert planned() == []
    assert planned(frozenset({"f2", "f3"})) == [[("f2", "f3")]]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"steps": "0"}, "steps"),
        ({"step_min_files": "1"}, "step_min_files"),
        ({"step_min_files": "5", "step_max_files": "4"}, "step_max_files"),
        ({"step_size_ratio": "1.5"}, "step_size_ratio"),
        ({"amplification": "0"}, "amplification"),
        ({"amplification": "1", "columns": "a,,b"}, "columns"),
        ({"amplification": "1", "columns": "`a"}, "columns"),
        ({"columns": "a"}, "columns"),
        ({"max_file_bytes": "0"}, "max_file_bytes"),
        ({"timestamp_start": "soon"}, "timestamp_start"),
        ({"timestamp_end": "2024-13-01"}, "timestamp_end"),
        ({"purge_deleted": "perhaps"}, "purge_deleted"),
    ],
    ids=str,
)
def test_options_out_of_range(options, named):
    with pytest.raises(sql_ext.UseError, match=named):
        settings_of(strategy=STEPS, options=options)


@pytest.mark.parametrize(
    ("options", "files", "text"),
    [
        ({"steps": "3"}, ["a", "b"], "steps = '3'.*nothing together with files"),
        ({"purge_deleted": "false"}, ["a", "b"], "purge_deleted = 'false'.*only columns and max_file_bytes count"),
        ({"max_file_bytes": "0"}, ["a", "b"], "max_file_bytes = .*0"),
        ({"columns": "a,,b"}, ["a", "b"], "columns"),
        ({}, ["a"], "files = .*two files or more"),
    ],
    ids=str,
)
def test_options_that_make_no_sense_with_files(options, files, text):
    with pytest.raises(sql_ext.UseError, match=text):
        settings_of(strategy=STEPS, options=options, files=files)


def test_named_files_are_joined_in_the_order_of_time_whatever_their_ratio():
    """A large one is divided in a commit of its own, and one that would be alone stays."""
    files = _candidates(7, size=[5, 900, 60, 30, 400, 90, 1], rows=[5, 900, 60, 30, 400, 90, 1])
    groups = list(named_groups(files, 100, STEPS))
    assert [(g.reason, _paths([g])[0], g.rows_per_file) for g in groups] == [
        ("NAMED_FILES_5_TO_2", [("f0", "f2", "f3"), ("f5", "f6")], None),
        ("LARGE_FILE_TO_9", [("f1",)], 100),
        ("LARGE_FILE_TO_4", [("f4",)], 100),
    ]
    assert "clustering" not in groups[0].note
    low = np.array([[0.0], [0], [0], [5], [0], [7], [8]])
    boxed = replace(files, low=low, high=low + 1, band_first=np.arange(7))
    note = next(iter(named_groups(boxed, 100, STEPS))).note
    assert "; clustering is lost: the boxes of the new files are 1.6 times as large as those of their files" in note
    assert note.endswith("together, and files of 5 ranges of weights are mixed, so that small samples read more")
    unknown = replace(files, rows=np.array([5, UNKNOWN, 60, 30, 1, 90, 1]))
    assert [g.reason for g in named_groups(unknown, 100, STEPS)] == ["NAMED_FILES_4_TO_2"]


def test_named_files_of_one_place_only():
    for what, values in (("partition", ["p=1", "p=1", "p=2"]), ("revision", [0, 3, 3])):
        with pytest.raises(sql_ext.UseError, match=f"files of one {what}.*f0.*f2"):
            check_one_place(_candidates(3, **{what: values}))


def test_large_files_are_divided_last_and_only_when_a_size_is_asked_for():
    sizes = ((10, 5), (151, 151), (150, 150), (400, 1))
    files = table_files([unindexed(f"f{n}", size, n, rows) for n, (size, rows) in enumerate(sizes)])

    def groups(**options):
        asked = settings_of(strategy=STEPS, options={"step_size_ratio": "1", **options}).selection[STEPS]
        return [found for found in strategy(STEPS).groups(files, asked) if isinstance(found, Concatenate)]

    assert groups() == []
    (group,) = groups(max_file_bytes="100")
    assert (group.reason, _paths([group]), group.rows_per_file) == ("LARGE_FILE_TO_2", [[("f1",)]], 76)


# ------------------------------------------------------------------------------------------------------------- Spark


def _ids_in_file_order(table):
    rows = table.data.select("id", F.col("_metadata.file_path").alias("file"), F.col("_metadata.row_index").alias("at"))
    files = {}
    for row in rows.orderBy("file", "at").collect():
        files.setdefault(row.file, []).append(row.id)
    return list(files.values())


def _run(table, **options):
    return [
        (r.state, r.reason, r.input_files, r.output_files)
        for r in table.optimize(strategy=STEPS, options={name: str(value) for name, value in options.items()})
    ]


@pytest.mark.slow
def test_a_plain_table_is_consolidated_without_its_deleted_rows(spark, new_table):
    table = new_table("id BIGINT", properties={**VECTORS, "delta.enableRowTracking": "true"})
    for first in range(0, 500, 100):
        table.append(spark.range(first, first + 100, 1, 1).sort(F.desc("id")))
    table.sql("DELETE FROM {t} WHERE id BETWEEN 120 AND 129")
    times = [file.modification_time for file in table.files]
    version, count = table.version, table.data.count()
    before = table.data.select("id", "_metadata.row_id").orderBy("id").collect()
    # The file with a deletion vector is left out, and does not separate its neighbours.
    (row,) = table.optimize(strategy=STEPS, options={"purge_deleted": "false", "step_max_files": "4"}, dry_run=True)
    assert (row.reason, row.input_files) == ("FILES_4_TO_1", 4)
    assert "1 file with deletion vectors stays as it is" in row.message
    assert _run(table) == [("committed", "FILES_5_TO_1", 5, 1)]
    ids = [n for first in range(0, 500, 100) for n in reversed(range(first, first + 100)) if not 120 <= n < 130]
    assert _ids_in_file_order(table) == [ids]
    assert table.data.select("id", "_metadata.row_id").orderBy("id").collect() == before
    (added,) = table.added(table.version)
    assert added["dataChange"] is False
    assert added["tags"]["use.timeRange"] == f"{min(times)},{max(times)}"
    assert spark.sql(f"SELECT count(*) FROM {table.name} VERSION AS OF {version}").collect()[0][0] == count
    assert table.optimize(strategy=STEPS)[0].reason == "NOTHING_TO_DO"


@pytest.mark.slow
def test_named_files_of_a_table(spark, new_table):
    """Exactly these, also unlike and isolated ones; a second call has nothing to divide."""
    table = new_table("id BIGINT, p INT", tail="PARTITIONED BY (p)", properties=VECTORS)
    for first, count in ((0, 10), (100, 20_000), (50_000, 10), (60_000, 10)):
        table.append(spark.range(first, first + count, 1, 1).selectExpr("id", "0 AS p"))
    table.append(spark.range(5).selectExpr("id + 90000 AS id", "1 AS p"))
    table.sql("DELETE FROM {t} WHERE id = 50003")
    by_first = {min(r.id for r in rows): file for file, rows in _rows_by_file(table).items()}
    first, large, second, other = (by_first[n] for n in (0, 100, 50_000, 90_000))
    rows, version = table.checksum(), table.version
    for names, text in (
        ([first, other], "files of one partition"),
        ([first, first], f"each file once, and {re.escape(first)}"),
        ([first, "p=0/no-such-file"], "There is no file 'p=0/no-such-file'"),
    ):
        with pytest.raises(sql_ext.UseError, match=text):
            table.optimize(strategy=STEPS, files=names)
    options = {"max_file_bytes": "20000", "columns": "id"}
    request = {"strategy": STEPS, "files": [second, large, first], "options": options}
    (planned, divided) = table.optimize(**request, parallelism=2, dry_run=True)
    assert (planned.reason, divided.reason[:13], table.version) == ("NAMED_FILES_2_TO_1", "LARGE_FILE_TO", version)
    assert "the boxes of the new files are" in planned.message
    report = table.optimize(**request)
    assert [row.state for row in report] == ["committed", "committed"]
    assert (report[0].output_files, report[1].output_files > 2) == (1, True)
    assert table.checksum() == rows
    left = _rows_by_file(table)
    assert {len(rs) for f, rs in left.items() if min(r.id for r in rs) in (60_000, 90_000)} == {10, 5}
    assert _ids_of(left, 0) == [*range(10), *(n for n in range(50_000, 50_010) if n != 50_003)]
    assert all(file.size <= 1.5 * 20_000 for file in table.files)
    for row in table.optimize(strategy=STEPS, options={"max_file_bytes": "20000"}):
        assert not row.reason.startswith("LARGE"), row


def _ids_of(rows_by_file, first):
    return next(sorted(r.id for r in rows) for rows in rows_by_file.values() if min(r.id for r in rows) == first)


def _rows_by_file(table):
    files = {}
    for row in table.data.select("id", F.col("_metadata.file_name").alias("file"), "p").collect():
        files.setdefault(f"p={row.p}/{row.file}", []).append(row)
    return files


@pytest.mark.slow
def test_files_of_one_revision_keep_their_cubes_and_bands(spark, new_table):
    table = new_table(NUMBERS, index="x,y", cube_size=200, file_bytes="8kb", properties=VECTORS)
    table.append(numbers(spark, 1500)).index()
    table.append(numbers(spark, 100, 3000)).append(numbers(spark, 100, 3100))
    table.sql("DELETE FROM {t} WHERE id % 10 = 0")
    rows, samples = table.checksum(), [sorted(r.id for r in table.data.sample(f).collect()) for f in (0.05, 0.3)]
    indexed = [file for file in table.files if file.revision]
    bands, revisions = _bands(table), {file.revision for file in table.files}
    report = _run(table)
    assert all(state == "committed" for state, *_ in report)
    assert report[0][1:] == ("FILES_2_TO_1", 2, 1)
    assert len([file for file in table.files if file.revision]) < len(indexed)
    assert len(table.unindexed) == 1
    assert table.checksum() == rows
    # A file that is alone in its band keeps its deletion vector, and the rows that it hides.
    assert 1350 <= check_placement(table) < 1500
    assert [sorted(r.id for r in table.data.sample(f).collect()) for f in (0.05, 0.3)] == samples
    assert {file.revision for file in table.files} == revisions == {0, 1}
    # No file has rows of two bands unless one had them before.
    assert _bands(table) == bands
    assert table.optimize(strategy=STEPS)[0].reason == "NOTHING_TO_DO"


def _bands(table):
    """The bands of the indexed files by their weights; each ends at 0.1 or 1 here."""
    tags = [(add.get("tags") or {}).get("use.band") for add in table.replayed()[0].values()]
    ranges = [tuple(map(int, text.split(","))) for text in tags if text]
    return {(first >= weight_of(0.1), end > weight_of(0.1)) for first, end in ranges}


@pytest.mark.slow
def test_boxes_and_times_restrict_steps(spark, new_table):
    table = new_table("id BIGINT, x DOUBLE")
    for first in (0, 10, 5000, 5010):
        table.append(spark.range(first, first + 10, 1, 1).selectExpr("id", "id / 10D AS x"))
    with pytest.raises(sql_ext.UseError, match="columns"):
        table.optimize(strategy=STEPS, options={"amplification": "2"})
    with pytest.raises(sql_ext.UseError, match="no_column"):
        table.optimize(strategy=STEPS, options={"amplification": "2", "columns": "x,no_column"})
    with pytest.raises(sql_ext.UseError, match="timestamp_end"):
        table.optimize(strategy=STEPS, options={"timestamp_start": "2030-01-02", "timestamp_end": "2030-01-01"})
    (row,) = table.optimize(strategy=STEPS, options={"timestamp_start": "2100-01-01"}, dry_run=True)
    assert row.reason == "NOTHING_TO_DO"
    before = table.checksum()
    assert _run(table, amplification=1.5, columns="x") == [("committed", "FILES_4_TO_2", 4, 2)]
    per_file = table.data.groupBy(F.col("_metadata.file_path")).agg(F.min("id").alias("first")).collect()
    assert sorted(r.first for r in per_file) == [0, 5000]
    assert table.checksum() == before


@pytest.mark.slow
def test_files_that_clustering_has_done_with_stay_alone(spark, new_table):
    table = new_table("id BIGINT", properties={"use.clustering.isolateBytes": "2kb"})
    for first in (0, 10, 20):
        table.append(spark.range(first, first + 10, 1, 1))
    table.append(spark.range(0, 3000, 1, 1))
    large = max(table.files, key=lambda file: file.size).path
    assert _run(table) == [("committed", "FILES_3_TO_1", 3, 1)]
    assert large in table.replayed()[0]
