"""The counts of each step of file selection, against a reading of the log's JSON that shares no code with the rules."""

import pytest
from tables import NUMBERS, LiveFile, numbers

from otree.cube import CubeId
from otree.weight import weight_of
from sql_ext import read_report

COLUMNS = "c BIGINT, a BIGINT, b BIGINT, p INT"
STEPS = ("partitions", "statistics", "limit", "cubes", "weights", "joins")


@pytest.fixture(scope="module")
def table(spark, shared_table):
    """Two partitions, statistics of `c` only, two indexed columns of which rows fill the corners of a square."""
    made = shared_table(
        COLUMNS,
        index="a:linear,b:linear",
        cube_size=50,
        tail="PARTITIONED BY (p)",
        properties={"delta.dataSkippingStatsColumns": "c"},
    )
    for start in (0, 1000):
        rows = spark.range(start, start + 3000).selectExpr(
            "id c",
            "IF(id % 3 = 0, 800, 0) + pmod(xxhash64(id, 'x'), 200) a",
            "IF(id % 2 = 0, 800, 0) + pmod(xxhash64(id, 'y'), 200) b",
            f"{int(start > 0)} p",
        )
        made.append(rows)
        size = sum(f.size for f in made.files) // 10
        made.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('use.index.targetFileBytes'='{size}')")
        made.index()
    made.append(spark.range(50).selectExpr("id c", "id a", "id b", "0 p"))
    return made


def steps(table, partition=None, c_below=None, a_below=None, b_below=None, fraction=1.0):
    """Numbers of files that each step removes, then those that are left, by the JSON of the log alone."""
    adds, metadata = table.replayed()
    assert metadata["partitionColumns"] == ["p"]
    limits = (a_below, b_below)
    last = weight_of(fraction) - 1 if fraction < 1 else 2**31 - 1
    removed = dict.fromkeys((*STEPS, "read"), 0)
    for add in adds.values():
        file = LiveFile.of(add)
        spaces = [t for r in [table.revisions.get(file.revision)] if r for t in r.transformations]

        def in_space(block, spaces=spaces):
            corners = [low for low, _ in CubeId.parse(block.cube_id, 2).box()]
            places = [
                1.0 if limit is None else (limit - space.minimum) / (space.maximum - space.minimum)
                for limit, space in zip(limits, spaces, strict=True)
            ]
            return all(low <= place for low, place in zip(corners, places, strict=True))

        if partition is not None and int(add["partitionValues"]["p"]) != partition:
            step = "partitions"
        elif c_below is not None and file.stats["minValues"]["c"] >= c_below:
            step = "statistics"
        elif file.blocks and not any(in_space(block) for block in file.blocks):
            step = "cubes"
        elif file.blocks and not (
            int(add["tags"]["use.band"].split(",")[0]) <= last
            and any(in_space(block) and block.min_weight <= last for block in file.blocks)
        ):
            step = "weights"
        else:
            step = "read"
        removed[step] += 1
    return removed


def executed(spark, data):
    """The counts that the executed plan of a query still has, the only scan's."""
    execution = data._jdf.queryExecution()
    execution.executedPlan().executeCollect()
    (counts,) = spark._jvm.scala.jdk.javaapi.CollectionConverters.asJava(
        spark._jvm.io.usespark.ScanCounts.ofPlan(execution.executedPlan())
    )
    return counts


@pytest.mark.parametrize(
    ("conditions", "fraction"),
    [
        ({}, 1.0),
        ({"partition": 1}, 1.0),
        ({"c_below": 900}, 1.0),
        ({"a_below": 150, "b_below": 150}, 1.0),
        ({}, 0.05),
        ({"partition": 0, "c_below": 2500, "a_below": 150, "b_below": 150}, 0.05),
    ],
)
def test_each_step_removes_what_the_log_says(table, conditions, fraction):
    data = table.data if fraction == 1 else table.data.sample(fraction)
    texts = {"partition": "p = {}", "c_below": "c < {}", "a_below": "a < {}", "b_below": "b < {}"}
    for name, value in conditions.items():
        data = data.where(texts[name].format(value))
    wanted = steps(table, **conditions, fraction=fraction)
    (scan,) = read_report(data).scans
    assert {name: count.files for name, count in scan.removed.items()} | {"read": scan.kept_files} == wanted
    assert sum(count.files for count in scan.removed.values()) + scan.kept_files == len(table.files)
    assert sum(count.bytes for count in scan.removed.values()) + scan.kept_bytes == sum(f.size for f in table.files)
    after = executed(table.spark, data)
    left = [after.partitions(), after.statistics(), after.cubes(), after.weights(), after.read()]
    order = ["partitions", "statistics", "cubes", "weights"]
    assert [count.files() for count in left[:4]] == [
        len(table.files) - sum(wanted[name] for name in order[: i + 1]) for i in range(4)
    ]
    assert (left[4].files(), left[4].bytes()) == (scan.kept_files, scan.kept_bytes)
    assert after.total().get().files() == len(table.files)


def test_every_step_has_a_case(table):
    wanted = steps(table, partition=0, c_below=2500, a_below=150, b_below=150, fraction=0.05)
    assert all(wanted[name] for name in ("partitions", "cubes", "weights", "read")), wanted
    assert steps(table, c_below=900)["statistics"]


def test_a_plain_table_has_counts_too(new_table, spark):
    table = new_table(NUMBERS)
    for start in (0, 100, 200):
        table.append(numbers(spark, 100, start))
    data = table.data.where("id < 150")
    (scan,) = read_report(data).scans
    assert ({n: c.files for n, c in scan.removed.items() if c.files}, scan.kept_files) == ({"statistics": 1}, 2)
    assert scan.table.endswith(table.name)
    assert scan.version == table.version
    assert executed(spark, data).read().files() == 2
    (limited,) = read_report(table.data.limit(1)).scans
    assert (limited.is_limited, limited.kept_files, limited.removed["limit"].files) == (True, 1, 2)
    assert executed(spark, table.data.limit(1)).total().get().files() == 3
