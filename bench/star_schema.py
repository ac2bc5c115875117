"""The star schema benchmark: what its 13 queries read with joins that skip files, without, and with liquid clustering.

The data follow the rules of O'Neil, O'Neil and Chen, "Star Schema Benchmark" (2009): sizes, domains, hierarchies, and
foreign keys that are drawn at random, so that only keys of dates follow what queries limit.

    make bench-star ARGS="--scale 1 --rounds 3"
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import tempfile
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from bench_session import start_session
from measured_query import COUNTED_READS, Execution, execute, in_turn, median_seconds
from pyspark.sql import DataFrame, SparkSession

import sql_ext
from catalog.settings.session_settings import JOINS_BYTES, JOINS_ENABLED

REGIONS = {
    "AFRICA": ("ALGERIA", "ETHIOPIA", "KENYA", "MOROCCO", "MOZAMBIQUE"),
    "AMERICA": ("ARGENTINA", "BRAZIL", "CANADA", "PERU", "UNITED STATES"),
    "ASIA": ("CHINA", "INDIA", "INDONESIA", "JAPAN", "VIETNAM"),
    "EUROPE": ("FRANCE", "GERMANY", "ROMANIA", "RUSSIA", "UNITED KINGDOM"),
    "MIDDLE EAST": ("EGYPT", "IRAN", "IRAQ", "JORDAN", "SAUDI ARABIA"),
}
NATIONS = [(nation, region) for region, nations in REGIONS.items() for nation in nations]
COLUMNS = ("lo_orderdate", "lo_custkey")
ON, OFF = "indexed, on", "indexed, off"
CONTENDERS = {
    ON: ("lineorder_indexed", "true"),
    OFF: ("lineorder_indexed", "false"),
    "liquid, on": ("lineorder_liquid", "true"),
    "liquid, off": ("lineorder_liquid", "false"),
}
DAYS = 2556

_REVENUE = "SELECT sum(lo_extendedprice * lo_discount) FROM {lo} JOIN dates ON lo_orderdate = d_datekey WHERE "
_BRANDS = (
    "SELECT sum(lo_revenue), d_year, p_brand1 FROM {lo} JOIN dates ON lo_orderdate = d_datekey "
    "JOIN part ON lo_partkey = p_partkey JOIN supplier ON lo_suppkey = s_suppkey WHERE {where} "
    "GROUP BY d_year, p_brand1"
)
_TRADE = (
    "SELECT {by}, d_year, sum(lo_revenue) FROM {lo} JOIN customer ON lo_custkey = c_custkey "
    "JOIN supplier ON lo_suppkey = s_suppkey JOIN dates ON lo_orderdate = d_datekey WHERE {where} GROUP BY {by}, d_year"
)
_PROFIT = (
    "SELECT d_year, {by}, sum(lo_revenue - lo_supplycost) FROM {lo} JOIN dates ON lo_orderdate = d_datekey "
    "JOIN customer ON lo_custkey = c_custkey JOIN supplier ON lo_suppkey = s_suppkey "
    "JOIN part ON lo_partkey = p_partkey WHERE {where} GROUP BY d_year, {by}"
)
_CITIES = "c_city IN ('UNITED KI1', 'UNITED KI5') AND s_city IN ('UNITED KI1', 'UNITED KI5')"
_YEARS = "d_year BETWEEN 1992 AND 1997"
_AMERICA = "c_region = 'AMERICA' AND s_region = 'AMERICA'"


def _filled(query: str, **parts: str) -> str:
    for name, text in parts.items():
        query = query.replace(f"{{{name}}}", text)
    return query


QUERIES = {
    "1.1": _REVENUE + "d_year = 1993 AND lo_discount BETWEEN 1 AND 3 AND lo_quantity < 25",
    "1.2": _REVENUE + "d_yearmonthnum = 199401 AND lo_discount BETWEEN 4 AND 6 AND lo_quantity BETWEEN 26 AND 35",
    "1.3": _REVENUE
    + "d_weeknuminyear = 6 AND d_year = 1994 AND lo_discount BETWEEN 5 AND 7 AND lo_quantity BETWEEN 26 AND 35",
    "2.1": _filled(_BRANDS, where="p_category = 'MFGR#12' AND s_region = 'AMERICA'"),
    "2.2": _filled(_BRANDS, where="p_brand1 BETWEEN 'MFGR#2221' AND 'MFGR#2228' AND s_region = 'ASIA'"),
    "2.3": _filled(_BRANDS, where="p_brand1 = 'MFGR#2239' AND s_region = 'EUROPE'"),
    "3.1": _filled(_TRADE, by="c_nation, s_nation", where=f"c_region = 'ASIA' AND s_region = 'ASIA' AND {_YEARS}"),
    "3.2": _filled(
        _TRADE, by="c_city, s_city", where=f"c_nation = 'UNITED STATES' AND s_nation = 'UNITED STATES' AND {_YEARS}"
    ),
    "3.3": _filled(_TRADE, by="c_city, s_city", where=f"{_CITIES} AND {_YEARS}"),
    "3.4": _filled(_TRADE, by="c_city, s_city", where=f"{_CITIES} AND d_yearmonth = 'Dec1997'"),
    "4.1": _filled(_PROFIT, by="c_nation", where=f"{_AMERICA} AND p_mfgr IN ('MFGR#1', 'MFGR#2')"),
    "4.2": _filled(
        _PROFIT,
        by="s_nation, p_category",
        where=f"{_AMERICA} AND d_year IN (1997, 1998) AND p_mfgr IN ('MFGR#1', 'MFGR#2')",
    ),
    "4.3": _filled(
        _PROFIT,
        by="s_city, p_brand1",
        where="s_nation = 'UNITED STATES' AND d_year IN (1997, 1998) AND p_category = 'MFGR#14'",
    ),
}


@dataclass(frozen=True)
class Figures:
    """What a query read.

    Attributes:
        files: of the fact table.
        bytes: of these files.
        input_bytes: by Spark's input metrics, of the whole query.
        jobs: number of Spark jobs.
        seconds: the median of the rounds.
    """

    files: int
    bytes: int
    input_bytes: int
    jobs: int
    seconds: float


def _place(key: str, seed: int) -> list[str]:
    """The nation, region and city of a customer or supplier."""
    at = f"pmod(xxhash64({key}, {seed}), {len(NATIONS)})"
    names = ", ".join(f"'{nation}'" for nation, _ in NATIONS)
    regions = ", ".join(f"'{region}'" for _, region in NATIONS)
    nation = f"element_at(array({names}), CAST({at} AS INT) + 1)"
    digit = f"pmod(xxhash64({key}, {seed + 1}), 10)"
    return [
        f"{nation} nation",
        f"element_at(array({regions}), CAST({at} AS INT) + 1) region",
        f"concat(rpad(substr({nation}, 1, 9), 9, ' '), {digit}) city",
    ]


def make_dimensions(spark: SparkSession, scale: float) -> dict[str, int]:
    """Writes the four dimensions, and returns the number of their rows."""
    sizes = {
        "customer": round(30_000 * scale),
        "supplier": round(2_000 * scale),
        "part": round(200_000 * (1 + math.floor(math.log2(scale)))) if scale >= 1 else round(200_000 * scale),
    }
    for name, seed in (("customer", 11), ("supplier", 13)):
        rows = spark.range(1, sizes[name] + 1).selectExpr("CAST(id AS INT) key", *_place("id", seed))
        letter = name[0]
        columns = [
            f"{letter}_{'custkey' if letter == 'c' else 'suppkey'}",
            *(f"{letter}_{c}" for c in rows.columns[1:]),
        ]
        rows.toDF(*columns).write.format("delta").saveAsTable(name)
    maker = "1 + pmod(xxhash64(id, 17), 5)"
    spark.range(1, sizes["part"] + 1).selectExpr(
        "CAST(id AS INT) p_partkey",
        f"concat('MFGR#', {maker}) p_mfgr",
        f"concat('MFGR#', {maker}, 1 + pmod(xxhash64(id, 19), 5)) p_category",
        f"concat('MFGR#', {maker}, 1 + pmod(xxhash64(id, 19), 5), 1 + pmod(xxhash64(id, 23), 40)) p_brand1",
    ).write.format("delta").saveAsTable("part")
    day = "date_add(DATE'1992-01-01', CAST(id AS INT))"
    spark.range(DAYS).selectExpr(
        f"CAST(date_format({day}, 'yyyyMMdd') AS INT) d_datekey",
        f"year({day}) d_year",
        f"CAST(date_format({day}, 'yyyyMM') AS INT) d_yearmonthnum",
        f"date_format({day}, 'MMMyyyy') d_yearmonth",
        f"CAST((dayofyear({day}) - 1) / 7 AS INT) + 1 d_weeknuminyear",
    ).write.format("delta").saveAsTable("dates")
    return sizes


def fact_rows(spark: SparkSession, rows: int, sizes: dict[str, int]) -> DataFrame:
    """The rows of lineorder: keys are drawn evenly; the lines of an order have its date and customer."""

    def drawn(seed: int, values: int, of: str = "id") -> str:
        return f"pmod(xxhash64({of}, {seed}), {values})"

    order = "CAST(id / 4 AS BIGINT)"
    day = f"date_add(DATE'1992-01-01', CAST({drawn(31, DAYS - 150, order)} AS INT))"
    return spark.range(rows).selectExpr(
        f"{order} lo_orderkey",
        "CAST(id % 4 AS INT) lo_linenumber",
        f"CAST(1 + {drawn(29, sizes['customer'], order)} AS INT) lo_custkey",
        f"CAST(1 + {drawn(37, sizes['part'])} AS INT) lo_partkey",
        f"CAST(1 + {drawn(41, sizes['supplier'])} AS INT) lo_suppkey",
        f"CAST(date_format({day}, 'yyyyMMdd') AS INT) lo_orderdate",
        f"CAST(1 + {drawn(43, 50)} AS INT) lo_quantity",
        f"CAST({drawn(47, 5_000_000)} + 90000 AS INT) lo_extendedprice",
        f"CAST({drawn(53, 11)} AS INT) lo_discount",
        f"CAST({drawn(47, 5_000_000)} * (100 - {drawn(53, 11)}) / 100 AS INT) lo_revenue",
        f"CAST({drawn(59, 100_000)} AS INT) lo_supplycost",
        f"element_at(array('REG AIR', 'AIR', 'RAIL', 'SHIP', 'TRUCK', 'MAIL', 'FOB'), CAST({drawn(61, 7)} AS INT) + 1)"
        " lo_shipmode",
    )


def make_facts(spark: SparkSession, rows: int, sizes: dict[str, int], file_bytes: int) -> None:
    """Writes the fact table plainly, indexed, and clustered by the same columns."""
    spark.conf.set("spark.databricks.delta.optimize.maxFileSize", str(file_bytes))
    fact_rows(spark, rows, sizes).write.format("delta").saveAsTable("lineorder_plain")
    columns = ", ".join(COLUMNS)
    spark.sql(
        f"CREATE TABLE lineorder_indexed USING delta TBLPROPERTIES ('use.index.columns' = '{columns}', "
        f"'use.index.targetFileBytes' = '{file_bytes}') AS SELECT * FROM lineorder_plain"
    )
    sql_ext.call(spark, "optimize", table="lineorder_indexed").collect()
    spark.sql(f"CREATE TABLE lineorder_liquid USING delta CLUSTER BY ({columns}) AS SELECT * FROM lineorder_plain")
    spark.sql("OPTIMIZE lineorder_liquid FULL")


def figures_of(spark: SparkSession, query: str, rounds: int) -> dict[str, Figures]:
    """Runs a query with each contender in turn; files and bytes are those of the last round."""

    def run(table: str, enabled: str) -> Execution:
        spark.conf.set(JOINS_ENABLED.name, enabled)
        return execute(spark, query.replace("{lo}", table))

    runs = in_turn({name: partial(run, *contender) for name, contender in CONTENDERS.items()}, rounds)
    last = {name: each[-1] for name, each in runs.items()}
    if any(run.rows != last[ON].rows for run in last.values()):
        raise AssertionError(f"other rows: {query}")
    figures = {}
    for name, run in last.items():
        (fact,) = (scan for scan in sql_ext.read_report(run.data).scans if "lineorder" in scan.table)
        seconds = median_seconds(runs[name])
        figures[name] = Figures(fact.joined_files, fact.joined_bytes, run.input_bytes, run.jobs, seconds)
    return figures


def print_totals(figures: dict[str, dict[str, Figures]]) -> None:
    """Prints sums of all queries, and the cost of joins where they skipped nothing."""
    for name in CONTENDERS:
        total = sum(found[name].bytes for found in figures.values())
        read = sum(found[name].input_bytes for found in figures.values())
        seconds = sum(found[name].seconds for found in figures.values())
        sums = f"{total / 1e6:.1f} MB of files, input {read / 1e6:.1f} MB, {seconds:.1f} s"
        print(f"{name}: {sums} in {len(figures)} queries")
    useless = [found for found in figures.values() if found[ON].files == found[OFF].files]
    if useless:
        added = statistics.median(found[ON].seconds - found[OFF].seconds for found in useless)
        ratio = statistics.median(found[ON].seconds / found[OFF].seconds for found in useless)
        print(f"{len(useless)} queries skip nothing: {added * 1000:+.0f} ms, {ratio:.3f} times (medians)")


def main() -> None:
    """Runs the benchmark and prints a table and, with ``--json``, its figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=0.5, help="scale factor; 1 has 6,000,000 orders' lines")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--target", type=int, default=8_000_000, help="bytes of a file")
    parser.add_argument("--shuffled", action="store_true", help="no side is broadcast, so jobs collect keys")
    parser.add_argument("--only", nargs="*", help="numbers of queries, such as 2.1")
    parser.add_argument("--json", help="a file for the figures")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        settings = {**COUNTED_READS, JOINS_BYTES.name: "1"}
        if options.shuffled:
            settings |= {
                "spark.sql.autoBroadcastJoinThreshold": "-1",
                "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
            }
        spark = start_session("bench-star", Path(home), "3g", settings)
        sizes = make_dimensions(spark, options.scale)
        make_facts(spark, round(6_000_000 * options.scale), sizes, options.target)
        figures: dict[str, dict[str, Figures]] = {}
        for name, query in QUERIES.items():
            if options.only and name not in options.only:
                continue
            figures[name] = figures_of(spark, query, options.rounds)
            shown = "; ".join(
                f"{contender}: {f.files} files, {f.bytes / 1e6:.1f} MB, input {f.input_bytes / 1e6:.1f} MB, "
                f"{f.jobs} jobs, {f.seconds:.2f} s"
                for contender, f in figures[name].items()
            )
            print(f"{name}  {shown}", flush=True)
        print_totals(figures)
        if options.json:
            table = {name: {c: asdict(f) for c, f in found.items()} for name, found in figures.items()}
            Path(options.json).write_text(json.dumps(table, indent=2), encoding="utf-8")
        spark.stop()


if __name__ == "__main__":
    main()
