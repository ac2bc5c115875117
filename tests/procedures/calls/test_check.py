"""``use.check``: a sound index shows no problem, each kind of damage is found, and repair gives the file back."""

import json
from collections import Counter

import pytest
from placement import check_placement
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from spark_jobs import jobs_started
from tables import NUMBERS, create, numbers

import sql_ext
from otree.cube import CubeId
from otree.weight import MAX_WEIGHT, MIN_WEIGHT
from procedures.insight.checking import placement as placing
from procedures.insight.checking import rows as reading
from procedures.insight.checking.metadata import cube_pattern
from procedures.layout import index_columns


def check(table, **arguments):
    return sql_ext.call(table.spark, "check", table=table.name, **arguments).collect()


def tamper(table, changes):
    """Commits files by hand with other tags (None = removed) or other fields."""
    live, _ = table.replayed()
    adds = []
    for path, change in changes.items():
        add = json.loads(json.dumps(live[path]))
        change(add)
        adds.append({"add": {**add, "dataChange": False}})
    text = "\n".join(json.dumps(a) for a in [{"commitInfo": {"operation": "TAMPER", "timestamp": 1}}, *adds])
    (table.path / "_delta_log" / f"{table.version + 1:020d}.json").write_text(text + "\n", encoding="utf-8")


def tags(**values):
    def change(add):
        for key, value in values.items():
            add["tags"].pop(key, None)
            if value is not None:
                add["tags"][key] = value

    return change


def blocks(edit):
    def change(add):
        found = json.loads(add["tags"]["blocks"])
        edit(found)
        add["tags"]["blocks"] = json.dumps(found)

    return change


@pytest.fixture
def table(spark, new_table):
    """A dozen indexed files, a deletion vector among them, a second revision, and an unindexed file."""
    made = new_table(
        f"{NUMBERS}, p INT", index="x,y", cube_size=100, file_bytes="3kb", tail="PARTITIONED BY (p)",
        properties={"delta.enableDeletionVectors": "true"},
    )  # fmt: skip
    made.append(numbers(spark, 1500).selectExpr("*", "CAST(id % 2 AS INT) p")).index()
    made.sql("DELETE FROM {t} WHERE id % 100 = 0")
    made.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.columns'='s')")
    made.append(numbers(spark, 60, start=1500).selectExpr("*", "CAST(7 AS INT) p")).index()
    return made.append(numbers(spark, 10, start=1600).selectExpr("*", "CAST(0 AS INT) p"))


@pytest.mark.slow
def test_a_sound_table_shows_nothing(table, monkeypatch):
    monkeypatch.setattr(reading, "FILES_AT_ONCE", 5)
    before, active = table.state(), SparkSession._activeSession
    [row] = check(table, deep=True, repair=True)
    # Sessions of ours are not for users.
    assert SparkSession._activeSession is active
    assert (row.check, row.severity, row.path) == ("SUMMARY", "ok", None)
    indexed = sum(f.revision > 0 for f in table.files)
    assert f"no problem in {indexed} indexed of {len(table.files)} files" in row.message
    assert "COUNT_MISMATCH" in row.message
    assert "BLOCK_COUNT" in row.message
    assert table.state() == before


@pytest.mark.slow
def test_damaged_tags_are_found_repaired_and_indexed_again(table):
    files = [f for f in table.files if f.revision == 1 and len(f.blocks) >= 2 and not f.deletion_vector]
    assert len(files) >= 10, len(files)
    paths = [f.path for f in files]

    def twice(found):
        found.append(dict(found[0], elementCount=0))

    def reverse(found):
        found[-1]["minWeight"], found[-1]["maxWeight"] = MAX_WEIGHT, MIN_WEIGHT

    def overlap(found):
        by_length = sorted(found, key=lambda b: len(b["cubeId"]))
        by_length[0].update(cubeId="", minWeight=MIN_WEIGHT, maxWeight=MAX_WEIGHT)

    kinds = {
        "TAGS_UNREADABLE": [
            tags(revision="one"),
            tags(blocks='[{"cubeId":"A"'),
            blocks(lambda b: b[0].update(extra=1)),
        ],
        "HALF_TAGGED": [tags(blocks=None), tags(revision=None), tags(blocks=None, revision=None)],
        "REVISION_UNKNOWN": [tags(revision="9")],
        "CUBE_INVALID": [blocks(lambda b: b[0].update(cubeId="AB"))],
        "CUBE_TWICE": [blocks(twice)],
        "COUNT_MISMATCH": [blocks(lambda b: b[0].update(elementCount=b[0]["elementCount"] + 1))],
    }
    wanted = [(kind, change) for kind, changes in kinds.items() for change in changes]
    extra = {"WEIGHTS_REVERSED": reverse, "BLOCKS_OVERLAP": overlap}
    spare = [f.path for f in table.files if f.revision == 1 and f.path not in paths[: len(wanted)]]
    wanted += [(kind, blocks(edit)) for kind, edit in extra.items()]
    chosen = dict(zip([*paths[: len(wanted) - 2], *spare][: len(wanted)], wanted, strict=True))
    before = table.checksum()
    tamper(table, {path: change for path, (_, change) in chosen.items()})
    *problems, summary = check(table)
    found = {(r.path, r.check) for r in problems if r.severity == "error"}
    assert {(path, kind) for path, (kind, _) in chosen.items()} <= found
    assert {path for path, _ in found} == set(chosen)
    assert summary.severity == "error"
    version = table.version
    assert all("repaired" in r.message for r in check(table, repair=True) if r.severity == "error")
    assert table.version == version + 1
    assert {a["path"] for a in table.added(version + 1)} == set(chosen)
    assert all(not a.get("tags") for a in table.added(version + 1))
    assert table.checksum() == before
    assert not [r for r in check(table) if r.severity == "error"]
    table.optimize(strategy="UnindexedFiles")
    assert table.checksum() == before
    check_placement(table)
    assert not table.unindexed


@pytest.mark.slow
def test_what_only_the_rows_show(table):
    files = [f for f in table.files if f.revision == 1 and not f.deletion_vector and len(f.blocks) > 1]
    moved, shifted, raised = files[:3]

    def move(found):
        # Some blocks carry a threshold and no row.
        fewest, *_, most = sorted(found, key=lambda b: b["elementCount"])
        fewest["elementCount"] += 1
        most["elementCount"] -= 1

    def shift(found):
        # A quarter of its cube: most of its rows lie in the others.
        max(found, key=lambda b: len(b["cubeId"]))["cubeId"] += "A"

    def raise_minimum(found):
        # Not that of the smallest weight, which the band of the file repeats.
        max(found, key=lambda b: b["minWeight"])["minWeight"] += 1

    tamper(table, {moved.path: blocks(move), shifted.path: blocks(shift), raised.path: blocks(raise_minimum)})
    assert [r for r in check(table) if r.severity == "error"] == []
    found = {(r.path, r.check) for r in check(table, deep=True) if r.path and r.severity == "error"}
    assert found == {
        (moved.path, "BLOCK_COUNT"),
        (shifted.path, "BLOCK_COUNT"),
        (shifted.path, "ROW_OUTSIDE_BLOCKS"),
        (raised.path, "BLOCK_COUNT"),
        (raised.path, "ROW_OUTSIDE_BLOCKS"),
    }
    before = table.checksum()
    check(table, deep=True, repair=True)
    assert {f.path for f in table.files if f.revision == 0} > {moved.path, shifted.path, raised.path}
    assert [r.check for r in check(table, deep=True) if r.severity == "error"] == []
    assert table.checksum() == before


@pytest.mark.slow
def test_a_deep_check_starts_few_jobs_for_each_revision(spark, new_table):
    made = new_table(NUMBERS, index="x,y", properties={"use.index.onWrite": "true"})
    started = []
    for number in range(2):
        made.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('use.index.columns' = '{('x,y', 'y,x')[number]}')")
        made.append(numbers(spark, 20, number * 20)).index()
        before = jobs_started(spark)
        check(made, deep=True)
        started.append(jobs_started(spark) - before)
    # One finds the files whose rows are read, the others place and count them.
    assert started[1] - started[0] <= 8


@pytest.mark.slow
def test_files_with_cubes_too_deep_to_be_checked_are_named_and_the_others_read(table, monkeypatch):
    monkeypatch.setattr(placing, "CELL_BITS", 2)
    indexed = [f for f in table.files if f.revision == 1]
    deep = {f.path for f in indexed if any(len(b.cube_id) > 1 for b in f.blocks)}
    read = next(f for f in indexed if f.path not in deep and not f.deletion_vector)

    def move_a_row(found):
        found[0]["elementCount"] -= 1
        found[-1]["elementCount"] += 1

    assert deep
    tamper(table, {read.path: blocks(move_a_row)})
    found = {(r.path, r.check) for r in check(table, deep=True) if r.path and r.revision_id == 1}
    assert found == {(path, "ROWS_NOT_CHECKED") for path in deep} | {(read.path, "BLOCK_COUNT")}


@pytest.mark.slow
def test_rows_that_are_placed_wrongly_are_found_although_the_blocks_agree(spark, new_table, monkeypatch):
    """The mistake that blocks cannot show: the same wrong expression places the rows and notes the blocks."""
    columns = "b BOOLEAN, f FLOAT, d DATE, t TIMESTAMP, w TIMESTAMP_NTZ, n DECIMAL(20,3), s STRING, y BINARY"
    rows = spark.range(200).selectExpr(
        "IF(id % 9 = 0, NULL, id % 2 = 0) b",
        "float(id / 7) f",
        "date_add(DATE'1960-01-01', CAST(id * 99 AS INT)) d",
        "timestamp_micros(id * 123456789123 - 10000000000001) t",
        "TIMESTAMP_NTZ'1969-12-31 23:59:59.999999' w",
        "CAST(id * 1.001 AS DECIMAL(20,3)) n",
        "concat('s', id) s",
        "CAST(concat('y', id) AS BINARY) y",
    )
    table = new_table(columns, index="b,f,d,t,w,n,s,y", cube_size=50).append(rows).index()
    assert [r.check for r in check(table, deep=True)] == ["SUMMARY"]
    right = index_columns.coordinate_column

    def wrong(spark, transformer, transformation, name):
        return F.lit(0.0) if name == "t" else right(spark, transformer, transformation, name)

    monkeypatch.setattr(index_columns, "coordinate_column", wrong)
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.columns'='t,s')")
    table.append(rows).index()
    assert {r.check for r in check(table, deep=True) if r.revision_id == 2} == {"PLACEMENT_DIFFERS"}


@pytest.mark.slow
def test_a_missing_file_is_found_and_not_untagged(table):
    gone = next(f for f in table.files if f.revision == 1)
    (table.path / gone.path).unlink()
    version = table.version
    [problem, summary] = check(table, deep=True, repair=True)
    assert (problem.check, problem.path, problem.severity) == ("FILE_MISSING", gone.path, "error")
    assert "repaired" not in problem.message
    assert summary.severity == "error"
    assert table.version == version


def test_a_missing_deletion_vector_is_found(spark, new_table):
    """Every query of its file fails. Files may share one, or have their own."""
    table = new_table("id BIGINT", properties={"delta.enableDeletionVectors": "true"})
    for first in (0, 10):
        table.append(spark.range(first, first + 10, 1, 1))
    table.sql("DELETE FROM {t} WHERE id IN (3, 13)")
    assert [row.check for row in check(table)] == ["SUMMARY"]
    for gone in table.path.rglob("deletion_vector_*.bin"):
        gone.unlink()
    *problems, summary = check(table)
    assert sorted(problem.path for problem in problems) == sorted(file.path for file in table.files)
    assert {(problem.check, problem.message) for problem in problems} == {
        ("FILE_MISSING", "the log names a deletion vector that does not exist")
    }
    assert summary.severity == "error"


@pytest.mark.parametrize("dimensions", [1, 2, 3, 6, 7, 11, 12])
def test_the_pattern_of_cube_ids_is_that_of_the_parser(dimensions):
    import re

    from otree.errors import IndexFormatError

    def valid(text):
        try:
            CubeId.parse(text, dimensions)
        except IndexFormatError:
            return False
        return True

    pattern = re.compile(cube_pattern(dimensions))
    symbols = "ABCEIQgw4/+9_ "
    texts = ["", *symbols, *(a + b for a in symbols for b in symbols), "AAAA", "gwgw", "wwwwA"]
    counts = Counter(valid(text) for text in texts)
    assert counts[True]
    assert counts[False]
    assert all(bool(pattern.fullmatch(text)) == valid(text) for text in texts)


@pytest.mark.slow
def test_a_table_named_by_its_path(spark, tmp_path):
    """A bare path has no scheme, and listings of its files have one: none of them is missing."""
    table = create(spark, f"delta.`{tmp_path}/t`", NUMBERS, index="x,y", cube_size=100)
    numbers(spark, 200).write.format("delta").mode("append").save(f"{tmp_path}/t")
    table.index()
    for deep in (False, True):
        assert [(r.check, r.severity) for r in check(table, deep=deep)] == [("SUMMARY", "ok")]


HOSTILE_NAMES = ("a,b", "a`b", "a.b c", 'A"[b]')


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_a_renamed_column_with_an_odd_name_is_checked_and_explained(spark, new_table, name):
    properties = {"delta.columnMapping.mode": "name"}
    made = new_table("x BIGINT, s STRUCT<y: INT>", index="x,s.y", cube_size=100, properties=properties)
    made.append(spark.range(400).selectExpr("id x", "named_struct('y', CAST(id % 7 AS INT)) s")).index()
    quoted = "`" + name.replace("`", "``") + "`"
    made.sql(f"ALTER TABLE {{t}} RENAME COLUMN x TO {quoted}")
    [row] = check(made, deep=True)
    assert (row.check, row.severity) == ("SUMMARY", "ok"), row
    made.append(spark.range(400, 450).selectExpr(f"id {quoted}", "named_struct('y', 3) s")).optimize()
    [row] = check(made, deep=True)
    assert (row.check, row.severity) == ("SUMMARY", "ok"), row
    query = f"SELECT * FROM {made.name} WHERE {quoted} < 10 AND s.y = 3"
    assert spark.sql(query).count() == 1
    for procedure, arguments in (
        ("health", {"table": made.name}),
        ("clustering_information", {"table": made.name}),
        ("quantiles", {"table": made.name, "column": quoted}),
        ("explain_skipping", {"query": query}),
        ("recommend", {"table": made.name, "queries": [query], "sample_rows": 1000}),
    ):
        assert sql_ext.call(spark, procedure, **arguments).collect() is not None, procedure
    for view in ("revisions", "cubes", "blocks", "index_files"):
        assert spark.table(f"{made.name}.{view}").collect(), view


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["SizeTieredClustering", "StepConsolidation"])
def test_merged_files_without_an_index_are_no_problem(spark, new_table, strategy):
    made = new_table(NUMBERS, index="x,y", cube_size=100)
    made.append(numbers(spark, 300)).index()
    for part in range(4):
        made.append(numbers(spark, 20, start=1000 + 20 * part))
    before = made.checksum()
    assert any(row.state == "committed" for row in made.optimize(strategy=strategy))
    assert made.unindexed
    [row] = check(made, deep=True)
    assert (row.check, row.severity) == ("SUMMARY", "ok"), row
    made.index()
    assert (made.checksum(), made.unindexed, len(check(made))) == (before, [], 1)


@pytest.mark.slow
def test_a_hashed_float_is_where_its_own_digits_place_it(spark, new_table):
    """As a DOUBLE, the lowest one is -3.4028234663852886E38."""
    table = new_table("f FLOAT", index="f:hashing")
    table.sql("INSERT INTO {t} VALUES (float('-3.4028235E38')), (0.1F), (NULL)")
    table.optimize()
    assert [row.severity for row in check(table, deep=True)] == ["ok"]
