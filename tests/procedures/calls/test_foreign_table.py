"""Tables that another writer of the format made, built here by hand from its facts and by nothing of ours."""

import base64
import datetime as dt
import json
import time
from collections import defaultdict

import pytest
from pyspark.sql import functions as F
from tables import DeltaTable, PlainReads

from sql_ext import read_report

ROWS = 1000
TRANSFORM = "io.qbeast.core.transform."
COLUMNS = "id BIGINT, a BIGINT, s STRING, d DATE"
VALUES = ("id % 1000 a", "concat('s', id % 77) s", "date_add(DATE'2024-01-01', CAST(id * 7 % 1000 AS INT)) d")
SPACES = {
    "linear and hash": (
        [
            {"className": TRANSFORM + "LinearTransformer", "columnName": "a", "dataType": "LongDataType"},
            {"className": TRANSFORM + "HashTransformer", "columnName": "s", "dataType": "StringDataType"},
        ],
        [
            {
                "className": TRANSFORM + "LinearTransformation", "minNumber": 0, "maxNumber": 999, "nullValue": 147,
                "orderedDataType": "LongDataType",
            },
            {"className": TRANSFORM + "HashTransformation", "nullValue": -1341184382},
        ],
    ),
    "quantiles": (
        [
            {
                "className": TRANSFORM + "CDFNumericQuantilesTransformer", "columnName": "a",
                "orderedDataType": "LongDataType",
            },
            {"className": TRANSFORM + "CDFStringQuantilesTransformer", "columnName": "s"},
        ],
        [
            {
                "className": TRANSFORM + "CDFNumericQuantilesTransformation", "quantiles": [0.0, 10.0, 100.0, 900.0],
                "dataType": "LongDataType",
            },
            {"className": TRANSFORM + "CDFStringQuantilesTransformation", "quantiles": ["s1", "s3", "s5", "s999"]},
        ],
    ),
    "dates": (
        [
            {"className": TRANSFORM + "LinearTransformer", "columnName": "d", "dataType": "DateDataType"},
            {"className": TRANSFORM + "CDFStringQuantilesTransformer", "columnName": "s"},
        ],
        [
            {
                "className": TRANSFORM + "LinearTransformation", "minNumber": 1704067200000,
                "maxNumber": 1790380800000, "nullValue": 1708242113821, "orderedDataType": "DateDataType",
            },
            {"className": TRANSFORM + "CDFStringQuantilesTransformation", "quantiles": ["s1", "s3", "s5", "s999"]},
        ],
    ),
    "quantiles of dates": (
        [
            {
                "className": TRANSFORM + "CDFNumericQuantilesTransformer", "columnName": "d",
                "orderedDataType": "DateDataType",
            },
            {"className": TRANSFORM + "HashTransformer", "columnName": "s", "dataType": "StringDataType"},
        ],
        [
            {
                "className": TRANSFORM + "CDFNumericQuantilesTransformation",
                "quantiles": [1704067200000, 1711929600000, 1719792000000, 1790380800000], "dataType": "DateDataType",
            },
            {"className": TRANSFORM + "HashTransformation", "nullValue": -1341184382},
        ],
    ),
}  # fmt: skip


class Format:
    """Sections 4 to 7 of the format once more, from its words; hashes by Scala and Spark themselves."""

    def __init__(self, spark, revision):
        self.spaces = revision["transformations"]
        self.columns = [t["columnName"] for t in revision["columnTransformers"]]
        self.murmur = getattr(getattr(spark._jvm.scala.util.hashing, "MurmurHash3$"), "MODULE$")
        self.hashes = {}

    def coordinate(self, space, value):
        if isinstance(value, dt.date):
            value = (value - dt.date(1970, 1, 1)).days * 86_400_000
        kind = space["className"].removeprefix(TRANSFORM)
        if kind == "LinearTransformation":
            low, high = float(space["minNumber"]), float(space["maxNumber"])
            return (float(space["nullValue"] if value is None else value) - low) * (1.0 / (high - low))
        if kind == "HashTransformation":
            text = str(space["nullValue"]) if value is None else value
            if text not in self.hashes:
                self.hashes[text] = (self.murmur.bytesHash(bytearray(text.encode())) & 0x7FFFFFFF) / 2147483647.0
            return self.hashes[text]
        if kind == "IdentityTransformation":
            return 0.0
        quantiles = space["quantiles"]
        last = len(quantiles) - 1
        if value is None or value < quantiles[0]:
            return 0.0
        if value > quantiles[-1]:
            return 1.0
        at = max(i for i in range(last + 1) if quantiles[i] <= value)
        if kind == "CDFStringQuantilesTransformation" or quantiles[at] == value:
            return at / last
        return (at + (value - quantiles[at]) / (quantiles[at + 1] - quantiles[at])) / last

    def path(self, values, depth=12):
        """The cubes from the root down that hold a point."""
        point = [self.coordinate(space, value) for space, value in zip(self.spaces, values, strict=True)]
        assert all(0.0 <= x <= 1.0 for x in point), values
        cubes = [""]
        for _ in range(depth):
            point = [x * 2 for x in point]
            upper = [x >= 1 for x in point]
            point = [x - 1 if high else x for x, high in zip(point, upper, strict=True)]
            bits = "".join("1" if high else "0" for high in upper).ljust(6, "0")
            cubes.append(cubes[-1] + base64.b64encode(bytes([int(bits, 2) << 2])).decode()[0])
        return cubes


def _weight(fraction):
    return int(fraction * 4294967295.0 - 2147483648)


def _make(spark, table, space):
    """A root of the smallest fifth of the weights, its four children as leaves, and a file for each half of them."""
    transformers, transformations = SPACES[space]
    revision = {
        "revisionID": 1, "timestamp": 1795248698271, "tableID": "/data/t1", "desiredCubeSize": 200,
        "columnTransformers": transformers, "transformations": transformations,
    }  # fmt: skip
    facts = Format(spark, revision)
    staging = {
        **revision, "revisionID": 0, "timestamp": 1795248698270,
        "columnTransformers": [{"className": TRANSFORM + "EmptyTransformer", "columnName": c} for c in facts.columns],
        "transformations": [{"className": TRANSFORM + "EmptyTransformation"}] * 2,
    }  # fmt: skip
    rows = spark.range(ROWS).selectExpr(
        "id", "IF(id % 50 = 0, NULL, id * 7919 % 1000) a", "IF(id % 40 = 0, NULL, concat('s', id % 1000)) s",
        "IF(id % 30 = 0, NULL, date_add(DATE'2024-01-01', CAST(id * 7919 % 1000 AS INT))) d",
    )  # fmt: skip
    cube_of, weight_of = {}, {}
    for r in rows.withColumn("w", F.hash(*facts.columns)).collect():
        weight_of[r.id] = r.w
        cube_of[r.id] = "" if r.w <= _weight(0.2) else facts.path([r[c] for c in facts.columns])[1]
    children = sorted(set(cube_of.values()) - {""})
    assert len(children) > 2
    for cubes in (["", *children[:2]], children[2:]):
        ids = [i for i, cube in cube_of.items() if cube in cubes]
        known = table.paths if table.version else set()
        table.append(rows.where(F.col("id").isin(ids)))
        (path,) = table.paths - known
        table.tags[path] = [
            {
                "cubeId": cube,
                "minWeight": min(weight_of[i] for i in ids if cube_of[i] == cube),
                "maxWeight": _weight(0.2) if cube == "" else 2147483647,
                "elementCount": sum(cube_of[i] == cube for i in ids),
                # Of early versions; whatever it says, the rows are those that plain Delta reads.
                "replicated": cube == "",
            }
            for cube in cubes
        ]
    live, metadata = table.replayed()
    metadata["configuration"] = {
        "qbeast.lastRevisionID": "1", "qbeast.revision.1": json.dumps(revision),
        "qbeast.revision.0": json.dumps(staging), "columnsToIndex": ",".join(facts.columns),
        "cubeSize": "200", "columnStats": "", "tableFormat": "delta",
    }  # fmt: skip
    tagged = [
        {"add": {**add, "dataChange": False, "tags": {"revision": "1", "blocks": json.dumps(table.tags[path])}}}
        for path, add in live.items()
    ]
    _commit(table, [{"metaData": metadata}, *tagged])


def _commit(table, actions):
    info = {"commitInfo": {"timestamp": time.time_ns() // 10**6, "operation": "WRITE", "operationParameters": {}}}
    text = "\n".join(json.dumps(action) for action in [info, *actions]) + "\n"
    (table.path / "_delta_log" / f"{table.version + 1:020d}.json").write_text(text, encoding="utf-8")


class _Foreign(DeltaTable):
    tags: dict = {}


def check_by_the_format(table):
    """Every row lies in one block of its file, and where a reader that walks the tree looks for it; returns rows."""
    live, metadata = table.replayed()
    files = [
        (a["path"], int(a["tags"]["revision"]), json.loads(a["tags"]["blocks"])) for a in live.values() if a["tags"]
    ]
    state = defaultdict(dict)
    for _, number, blocks in files:
        for b in blocks:
            assert set(b) <= {"cubeId", "minWeight", "maxWeight", "elementCount", "replicated"}
            cubes = state[number]
            cubes[b["cubeId"]] = min(b["maxWeight"], cubes.get(b["cubeId"], 2147483647))
    checked = 0
    for path, number, blocks in files:
        revision = json.loads(metadata["configuration"][f"qbeast.revision.{number}"])
        facts = Format(table.spark, revision)
        weight = F.hash(*facts.columns).alias("w")
        for *values, w in table.spark.read.parquet(str(table.path / path)).select(*facts.columns, weight).collect():
            cubes = facts.path(values)
            (block,) = [b for b in blocks if b["cubeId"] in cubes and b["minWeight"] <= w <= b["maxWeight"]]
            for ancestor in cubes[: cubes.index(block["cubeId"])]:
                assert state[number].get(ancestor, -(2**31)) < w, "the walk ends above this row"
            checked += 1
    return checked


@pytest.mark.quick_sample(1)
@pytest.mark.parametrize("space", SPACES)
def test_it_is_read_sampled_appended_and_optimized(spark, new_table, space):
    made = new_table(COLUMNS)
    table = _Foreign(spark, made.name)
    table.tags.clear()
    _make(spark, table, space)
    assert check_by_the_format(table) == ROWS
    columns = [each["columnName"] for each in SPACES[space][0]]

    def sampled(fraction):
        sample = table.data.sample(fraction)
        report = read_report(sample)
        assert (report.samples, report.weight_filters) == (0, 1)
        with PlainReads(spark):
            wanted = table.data.where(F.hash(*columns) < _weight(fraction)).collect()
        assert sorted(r.id for r in sample.collect()) == sorted(r.id for r in wanted)
        return report.scans[0]

    assert sampled(0.1).kept_files == 1, "only the file with the root has such weights"
    for condition in (
        "a BETWEEN 800 AND 850",
        "s = 's7'",
        "a IS NULL AND s > 's5'",
        "d = DATE'2024-07-01'",
        "d IS NULL",
    ):
        with PlainReads(spark):
            wanted = table.data.where(condition).count()
        assert table.data.where(condition).count() == wanted, condition

    table.append(spark.range(ROWS, ROWS + 300).selectExpr("id", *VALUES))
    before = table.checksum()
    sampled(0.1)
    report = table.optimize()
    assert {r.state for r in report if r.reason != "READ_COST_BELOW_TARGET"} == {"committed"}
    assert table.checksum() == before
    assert table.unindexed == []
    assert check_by_the_format(table) == ROWS + 300
    assert max(table.revisions) == 1
    sampled(0.1)


@pytest.mark.slow
def test_a_table_made_for_an_index_that_has_no_data_yet(spark, new_table):
    """The other form of staging: real transformers in revision 0, and no transformations."""
    table = new_table(COLUMNS)
    transformers, _ = SPACES["quantiles"]
    revision = {
        "revisionID": 0, "timestamp": 1, "tableID": "/data/t1", "desiredCubeSize": 300,
        "columnTransformers": transformers, "transformations": [],
    }  # fmt: skip
    metadata = table.replayed()[1]
    metadata["configuration"] = {"qbeast.lastRevisionID": "0", "qbeast.revision.0": json.dumps(revision)}
    _commit(table, [{"metaData": metadata}])
    table.append(spark.range(800).selectExpr("id", "id * id a", "concat('s', id % 77) s", "CAST(NULL AS DATE) d"))
    before = table.checksum()
    table.index()
    assert table.checksum() == before
    assert sorted(table.revisions) == [0, 1]
    assert table.revisions[1].desired_cube_size == 300
    assert check_by_the_format(table) == 800


@pytest.mark.slow
def test_tags_of_before_version_0_6_are_no_index(spark, new_table, caplog):
    table = new_table(COLUMNS, index="a", cube_size=300)
    table.append(spark.range(500).selectExpr("id", "id a", "'x' s", "CAST(NULL AS DATE) d"))
    old = {"state": "FLOODED", "cube": "w", "revision": "1", "minWeight": "5", "maxWeight": "9", "elementCount": "500"}
    _commit(table, [{"add": {**add, "dataChange": False, "tags": old}} for add in table.replayed()[0].values()])
    before = table.checksum()
    assert table.data.where("a = 7").count() == 1
    assert {r.revision_id for r in spark.sql(f"SELECT * FROM {table.name}.index_files").collect()} == {0}
    table.index()
    assert table.checksum() == before
    assert check_by_the_format(table) == 500
    assert [r.message for r in caplog.records if "version 0.6" in r.message] == [
        "1 files have index tags of before version 0.6, and count as unindexed."
    ]
