"""Random joins of tables with an index and without one, each against the same query with the rule switched off."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, fields
from random import Random

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tables import DeltaTable, PlainReads, create

from sql_ext import read_report

GROUPS = 120
# Without adaptive execution, Spark sometimes evaluates a filter before the subquery that prunes partitions has ended.
_UNFINISHED = "IN dynamicpruning"
_SHOWN = 1_000  # characters of an error
FACTS = (
    "id BIGINT, i INT, l BIGINT, h SMALLINT, f FLOAT, x DOUBLE, d DECIMAL(10,2), s STRING, day DATE, t TIMESTAMP, "
    "n TIMESTAMP_NTZ, b BOOLEAN, st STRUCT<k: INT, s: STRING>, p INT"
)
SIDES = "g INT, i INT, l BIGINT, f FLOAT, x DOUBLE, d DECIMAL(20,4), s STRING, day DATE, t TIMESTAMP, n TIMESTAMP_NTZ"
ZONES = ("UTC", "America/St_Johns", "Asia/Kathmandu", "Pacific/Apia")
# Of a fact and of a side. Pairs of different types are cast by Spark, to the wider one or to one in between.
PAIRS = tuple(
    tuple(pair.split(" ~ "))
    for pair in """
    {a}.i ~ {b}.i; {a}.l ~ {b}.l; {a}.f ~ {b}.f; {a}.x ~ {b}.x; {a}.d ~ {b}.d; {a}.s ~ {b}.s; {a}.day ~ {b}.day;
    {a}.t ~ {b}.t; {a}.n ~ {b}.n; {a}.i ~ {b}.l; {a}.l ~ {b}.i; {a}.h ~ {b}.i; {a}.h ~ {b}.d; {a}.i ~ {b}.x;
    {a}.l ~ {b}.x; {a}.f ~ {b}.x; {a}.x ~ {b}.f; {a}.i ~ {b}.f; {a}.d ~ {b}.l; {a}.l ~ {b}.d; {a}.d ~ {b}.x;
    {a}.i ~ {b}.s; {a}.s ~ {b}.i; {a}.st.k ~ {b}.i; {a}.st.s ~ {b}.s; CAST({a}.t AS DATE) ~ {b}.day;
    CAST({a}.n AS DATE) ~ {b}.day; {a}.t ~ {b}.day; {a}.n ~ {b}.t; {a}.day ~ {b}.t; {a}.i + 1 ~ {b}.i;
    -{a}.x ~ {b}.x; coalesce({a}.i, 5) ~ {b}.i; {a}.s COLLATE UTF8_LCASE ~ upper({b}.s); {a}.p ~ {b}.i % 3;
    CAST({a}.l AS INT) ~ {b}.i; CAST({a}.t AS TIMESTAMP_NTZ) ~ {b}.n; year({a}.day) ~ {b}.i + 1970;
    substr({a}.s, 1, 2) ~ substr({b}.s, 1, 2); CAST({a}.x AS FLOAT) ~ {b}.f; {a}.i ~ CAST({b}.b AS INT)
    """.replace("\n", " ").split(";")
)

# Column, how many of its rows are null (one of so many), and its other values, in the order of g.
VALUES = (
    ("i", 40, "CAST(IF(hash(id) % 60 = 0, IF(id % 2 = 0, 2147483647, -2147483648), g - 40) AS INT)"),
    ("l", 30, "g - 40"),
    ("h", 30, "CAST(g - 40 AS SMALLINT)"),
    ("f", 50, "CAST(IF(hash(id) % 30 = 0, DOUBLE('NaN'), IF(g = 40, -0.0D, g / 4 - 10)) AS FLOAT)"),
    ("x", 40, "IF(hash(id) % 40 = 1, DOUBLE('NaN'), IF(g = 40, -0.0D, DOUBLE(g - 40)))"),
    ("d", 30, "CAST((g - 40) / 2 AS DECIMAL(10,2))"),
    ("s", 30, "concat(char(97 + CAST(g / 10 AS INT)), g % 10, repeat('z', CAST(g AS INT)))"),
    ("day", 30, "date_add(DATE'1987-10-20', CAST(g AS INT))"),
    ("t", 30, "TIMESTAMP'1987-10-20 00:00:30Z' + make_dt_interval(CAST(g AS INT), 0, CAST(id % 3 AS INT) * 719)"),
    ("n", 30, "TIMESTAMP_NTZ'1987-10-20 00:00:00' + make_dt_interval(CAST(g AS INT), 0, CAST(id % 2 AS INT) * 719)"),
    ("b", 9, "id % 3 = 0"),
    ("st", 20, "named_struct('k', CAST(g - 40 AS INT), 's', concat(char(97 + CAST(g / 10 AS INT)), g % 10))"),
)


@dataclass
class JoinTally:
    """What a run has looked at.

    Attributes:
        queries: queries compared.
        scans: scans below a join whose keys were looked at.
        narrowed: scans of these that skipped files.
        skipped: files that they skipped.
        jobs: joins for which a job collected keys.
        useful_jobs: joins with such a job that skipped files.
        reasons: why the others skipped none, and how often.
        rows: rows of the results.
        unanswered: queries that Spark fails without the rule, so that there is nothing to compare.
        failures: queries whose rows differ.
    """

    queries: int = 0
    scans: int = 0
    narrowed: int = 0
    skipped: int = 0
    jobs: int = 0
    useful_jobs: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    unanswered: int = 0
    failures: list[str] = field(default_factory=list)

    def __add__(self, other: JoinTally) -> JoinTally:
        return JoinTally(**{one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(self)})

    @property
    def text(self) -> str:
        return (
            f"{self.queries} queries, {self.narrowed} of {self.scans} scans below joins skipped {self.skipped} files; "
            f"{self.useful_jobs} of {self.jobs} jobs for keys helped; {self.rows} rows; "
            f"{self.unanswered} unanswered by Spark; {len(self.failures)} failures"
        )

    @property
    def weaknesses(self) -> list[str]:
        """Why the run shows too little."""
        return [] if self.skipped else ["no file was skipped, so nothing was tried"]

    def count(self, data: DataFrame) -> None:
        for scan in read_report(data).scans:
            self.scans += bool(scan.joins)
            self.narrowed += scan.joined_files < scan.kept_files
            self.skipped += scan.kept_files - scan.joined_files
            self.jobs += sum(join.job_files is not None for join in scan.joins)
            self.useful_jobs += sum(join.job_files is not None and join.reason is None for join in scan.joins)
            self.reasons.update(join.reason.value for join in scan.joins if join.reason is not None)


@dataclass(frozen=True)
class JoinTables:
    """The tables that are joined: large ones, whose files are skipped, and small ones."""

    facts: tuple[DeltaTable, ...]
    sides: tuple[DeltaTable, ...]


def _facts(spark: SparkSession, random: Random, count: int) -> DataFrame:
    """Rows in the order of most of their columns, with nulls, NaN, negative zeros and far values among them."""
    seed = random.randrange(1000)
    rows = spark.range(count).selectExpr("id", f"id % {GROUPS} g")
    nulls = (
        f"IF(pmod(xxhash64(id, {seed}, '{name}'), {chance}) = 0, NULL, {value}) {name}"
        for name, chance, value in VALUES
    )
    return rows.selectExpr("id", *nulls, "CAST(id % 3 AS INT) p")


def _sides(spark: SparkSession, shift: int) -> DataFrame:
    return spark.range(GROUPS).selectExpr(
        "CAST(id AS INT) g",
        f"CAST(IF(id % 41 = 3, NULL, id - 40 + {shift}) AS INT) i",
        f"IF(id % 37 = 3, NULL, id - 40 + {shift}) l",
        "CAST(IF(id % 50 = 9, DOUBLE('NaN'), id / 4 - 10) AS FLOAT) f",
        "IF(id = 40, 0.0D, IF(id % 60 = 9, DOUBLE('NaN'), DOUBLE(id - 40))) x",
        f"CAST((id - 40 + {shift}) / 2 AS DECIMAL(20,4)) d",
        "IF(id % 43 = 3, NULL, concat(char(97 + CAST(id / 10 AS INT)), id % 10, repeat('z', CAST(id AS INT)))) s",
        f"date_add(DATE'1987-10-20', CAST(id AS INT) + {shift}) day",
        "TIMESTAMP'1987-10-20 00:00:30Z' + make_dt_interval(CAST(id AS INT)) t",
        "TIMESTAMP_NTZ'1987-10-20 00:00:00' + make_dt_interval(CAST(id AS INT)) n",
        "id % 2 = 0 b",
    )


def make_join_tables(spark: SparkSession, prefix: str, random: Random) -> JoinTables:
    """Makes an indexed table, a plain one, and one with deletion vectors, mapped columns and several revisions."""
    mapped = {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"}
    indexed = create(
        spark, f"{prefix}_indexed", FACTS, index="i,day,s:quantiles", cube_size=40, file_bytes=6000,
        properties={"delta.dataSkippingNumIndexedCols": "0"},
    )  # fmt: skip
    indexed.append(_facts(spark, random, 1500)).index()
    plain = create(spark, f"{prefix}_plain", FACTS)
    ranged = _facts(spark, random, 1500).repartitionByRange(20, F.expr(f"id % {GROUPS}"))
    ranged.sortWithinPartitions("id").write.format("delta").mode("append").saveAsTable(plain.name)
    mixed = create(
        spark, f"{prefix}_mixed", FACTS, index="x,t,l", cube_size=40, file_bytes=6000, properties=mapped,
        tail="PARTITIONED BY (p)",
    )  # fmt: skip
    mixed.append(_facts(spark, random, 800)).index()
    mixed.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.columns'='d,n,f')")
    mixed.append(_facts(spark, random, 800)).index()
    mixed.append(_facts(spark, random, 90))
    mixed.sql("ALTER TABLE {t} RENAME COLUMN i TO j")
    mixed.sql("ALTER TABLE {t} RENAME COLUMN j TO i")
    for table in (plain, mixed):
        table.sql("DELETE FROM {t} WHERE id % 29 = 7")
    sides = []
    for number, shift in enumerate((0, 1)):
        side = create(spark, f"{prefix}_side{number}", f"{SIDES}, b BOOLEAN")
        sides.append(side.append(_sides(spark, shift)))
    return JoinTables((indexed, plain, mixed), tuple(sides))


def random_subset(random: Random, alias: str = "") -> str:
    """A condition that leaves some rows of a side: a range, some of them, one, none or all."""
    g, low = f"{alias}g", random.randrange(GROUPS)
    return random.choice(
        [
            f"{g} BETWEEN {low} AND {low + random.randrange(1, 25)}",
            f"{g} BETWEEN {low} AND {low + random.randrange(1, 25)}",
            f"{g} IN ({', '.join(str(random.randrange(GROUPS)) for _ in range(random.randrange(1, 9)))})",
            f"{g} = {low}",
            f"{g} % 40 = {random.randrange(40)}",
            f"{g} BETWEEN {low} AND {low + 9} AND rand() * 2 < 2",
            f"{g} > 1000",
            "true",
        ]
    )


def random_condition(random: Random, a: str, b: str, operators: tuple[str, ...] = ("=", "=", "=", "=", "<=>")) -> str:
    """Comparisons of columns of a fact with those of a side, by their names in the statement."""
    # Half of the pairs have one type, or one that Spark widens.
    known = random.choice([PAIRS, PAIRS[:20]])
    pairs = [random.choice(known) for _ in range(random.choice([1, 1, 1, 2, 3]))]
    return " AND ".join(f"{left.format(a=a)} {random.choice(operators)} {right.format(b=b)}" for left, right in pairs)


def random_join(tables: JoinTables, random: Random) -> str:
    """A query whose rows are one BIGINT each."""
    fact, other = random.choice(tables.facts).name, random.choice(tables.facts).name
    side, second = random.choice(tables.sides).name, random.choice(tables.sides).name
    where = random.choice(["true", "true", "a.id % 3 = 0", "a.i > 0", "a.x < 20 OR a.s IS NULL", "a.day IS NOT NULL"])
    left, right = f"(SELECT * FROM {fact} a WHERE {where}) a", f"(SELECT * FROM {side} WHERE {random_subset(random)}) b"
    third = f"(SELECT * FROM {second} WHERE {random_subset(random)}) c"
    broadcast = "/*+ BROADCAST(b, c) */"
    hint = random.choice(["", broadcast, broadcast, "/*+ MERGE(b) */", "/*+ SHUFFLE_HASH(b) */"])
    outer = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]
    kind, of_three = random.choice([*outer, "LEFT SEMI JOIN", "LEFT ANTI JOIN"]), random.choice(outer)
    grouped = f"(SELECT i, day, s, l, x, t, n, d, f, h, st, p, count(*) c FROM {fact} GROUP BY ALL) a"
    renamed = f"(SELECT id, i + 0 i, l k, l, x, f, d, s, day, t, n, h, st, p FROM {fact}) a"
    twice = f"(SELECT DISTINCT * FROM {right} UNION ALL SELECT * FROM {right}) b"
    joined = f"(SELECT b.*, c.i ci FROM {right} JOIN {third} ON b.g = c.g) b"
    on, on_c = random_condition(random, "a", "b"), random_condition(random, "a", "c")
    extra = random.choice(["", "", " AND a.id > b.g"])
    (value, of_side), negation = random.choice(PAIRS), random.choice(["", "", "NOT "])
    exists = f"EXISTS (SELECT 1 FROM {side} b WHERE {random_subset(random, 'b.')} AND {on})"
    member = f"{value.format(a='a')} {negation}IN (SELECT {of_side.format(b='b')} FROM {right})"
    return random.choice(
        [
            f"SELECT {hint} a.id FROM {left} JOIN {right} ON {on}{extra}",
            f"SELECT {hint} a.id FROM {left} JOIN {right} ON {on}",
            f"SELECT {hint} a.id FROM {right} JOIN {left} ON {on}",
            f"SELECT {hint} a.id FROM {left} {kind} {right} ON {on}{extra}",
            f"SELECT {hint} b.g FROM {right} {kind} {left} ON {on}",
            f"SELECT {hint} a.id FROM {left} JOIN {right} ON {on} JOIN {third} ON {on_c}",
            f"SELECT {hint} a.id FROM {left} {of_three} {right} ON {on} JOIN {third} ON {on_c}",
            f"SELECT a.id FROM {left} WHERE {member}",
            f"SELECT a.id FROM {left} WHERE {member} OR a.id % 11 = 0",
            f"SELECT a.id FROM {left} WHERE {negation}{exists}",
            f"SELECT a.id FROM {left} WHERE {exists} AND {member}",
            f"SELECT {hint} a.id FROM (SELECT * FROM {fact} UNION ALL SELECT * FROM {other}) a JOIN {right} ON {on}",
            f"SELECT {hint} a.c FROM {grouped} JOIN {right} ON {on}",
            f"SELECT {hint} a.id FROM {left} JOIN {joined} ON {on}",
            f"SELECT a.id + o.id FROM {left} JOIN {right} ON {on} JOIN {other} o ON a.id = o.id + 1",
            f"SELECT {hint} count(*) FROM {left} JOIN {right} ON {on} GROUP BY a.p",
            f"SELECT (SELECT max(b.g) FROM {right} WHERE b.i = a.i) FROM {left} WHERE {member}",
            f"SELECT {hint} a.id FROM {left} JOIN {twice} ON {on}",
            f"SELECT {hint} a.id FROM {left} JOIN {right} ON a.i = b.i AND a.day = b.day AND a.s = b.s",
            f"SELECT {hint} a.id FROM {renamed} LEFT SEMI JOIN {right} ON {on}",
        ]
    )


def random_shuffled_join(tables: JoinTables, random: Random) -> str:
    """A query in which a job may collect the keys of a filtered side: columns that are compared as they are."""
    fact, side, second = random.choice(tables.facts).name, random.choice(tables.sides).name, tables.sides[0].name
    left = f"(SELECT * FROM {fact} a WHERE {random.choice(['true', 'a.i > -30', 'a.id % 3 = 0'])}) a"
    right, third = (
        f"(SELECT * FROM {name} WHERE {random_subset(random)}) {alias}" for name, alias in ((side, "b"), (second, "c"))
    )
    hint = random.choice(["", "", "/*+ SHUFFLE_HASH(b) */", "/*+ BROADCAST(c) */"])

    def on(alias: str) -> str:
        pairs = random.sample(PAIRS[:13], random.choice([1, 1, 2]))
        return " AND ".join(f"{one.format(a='a')} = {other.format(b=alias)}" for one, other in pairs)

    grouped = f"(SELECT i, l, s, day, max(g) g FROM {right} GROUP BY i, l, s, day HAVING max(g) > 3) b"
    both = f"(SELECT * FROM {left} UNION ALL SELECT * FROM {left} WHERE i > 3) a"
    exact = random.choice(["a.i = b.i", "a.l = b.l AND a.s = b.s", "a.day = b.day", "a.i = b.l"])
    outer = random.choice(["LEFT", "RIGHT", "FULL", "LEFT ANTI"])
    return random.choice(
        [
            f"SELECT {hint} a.id FROM {left} JOIN {right} ON {on('b')}",
            f"SELECT {hint} a.id FROM {right} JOIN {left} ON {on('b')} AND a.id > b.g",
            f"SELECT {hint} a.id FROM {left} LEFT SEMI JOIN {right} ON {on('b')}",
            f"SELECT a.id FROM {left} WHERE EXISTS (SELECT 1 FROM {right} WHERE {on('b')})",
            f"SELECT {hint} a.id FROM {left} JOIN {right} ON {on('b')} JOIN {third} ON {on('c')}",
            f"SELECT {hint} a.id FROM {left} {outer} JOIN {third} ON {on('c')} JOIN {right} ON {on('b')}",
            f"SELECT {hint} a.id FROM {left} JOIN {grouped} ON {exact}",
            f"SELECT a.id FROM {both} JOIN {right} ON {exact}",
            f"SELECT id FROM {left} JOIN {right} ON {exact} UNION ALL SELECT id FROM {left} JOIN {third} ON a.i = c.i",
            f"SELECT {hint} a.id FROM {left} JOIN (SELECT b.* FROM {right} JOIN {third} ON b.g = c.g) b ON {on('b')}",
        ]
    )


def check_join(
    spark: SparkSession, tables: JoinTables, random: Random, tally: JoinTally, *, shuffled: bool = False
) -> None:
    """Compares the rows of a random query with those without the rule, and without adaptive execution."""
    make = random_shuffled_join if shuffled and random.random() < 0.7 else random_join
    text = make(tables, random)
    with PlainReads(spark), adaptive(spark, "false"):
        try:
            wanted = Counter(map(tuple, spark.sql(text).collect()))
        except (Py4JJavaError, PySparkException) as error:
            if _UNFINISHED in str(error):
                tally.unanswered += 1
            else:
                tally.failures.append(f"{text}\n  failed without the rule: {str(error)[:_SHOWN]}")
            return
    try:
        data = spark.sql(text)
        found = Counter(map(tuple, data.collect()))
    except (Py4JJavaError, PySparkException) as error:
        tally.failures.append(f"{text}\n  failed with the rule: {str(error)[:_SHOWN]}")
        return
    tally.count(data)
    tally.queries += 1
    tally.rows += sum(found.values())
    if found != wanted:
        lost, added = list((wanted - found).elements()), list((found - wanted).elements())
        tally.failures.append(f"{text}\n  lost {lost[:3]} of {len(lost)}, added {added[:3]} of {len(added)}")


def run_joins(
    spark: SparkSession, tables: JoinTables, seeds: Iterable[int], tally: JoinTally, *, shuffled: bool = False
) -> Iterator[int]:
    """Checks random joins. Every second query is not allowed to broadcast without a hint.

    Args:
        spark: the session.
        tables: as ``make_join_tables`` makes them.
        seeds: of the random numbers of each query.
        tally: receives what was found.
        shuffled: whether no query is.

    Yields:
        The seed of each query, once it is done.
    """
    for number in seeds:
        random = Random(number)
        is_shuffled = shuffled or number % 2 == 0
        with adaptive_joins(spark, random.choice(ZONES), shuffled=is_shuffled):
            check_join(spark, tables, random, tally, shuffled=is_shuffled)
        yield number


@contextmanager
def adaptive_joins(spark: SparkSession, zone: str, *, shuffled: bool = False) -> Iterator[None]:
    """Adaptive execution in a time zone, where casts give null in place of an error, and every scan is large enough.

    With ``shuffled``, sides are shuffled, and jobs of any size collect their keys.
    """
    settings = {
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.ansi.enabled": "false",
        "spark.sql.session.timeZone": zone,
        "spark.qbeast.use.joins.bytes": "1",
    }
    if shuffled:
        settings["spark.sql.autoBroadcastJoinThreshold"] = "-1"
        settings["spark.qbeast.use.joins.job-share"] = "1000000"
    with conf(spark, settings):
        yield


def adaptive(spark: SparkSession, value: str) -> AbstractContextManager[None]:
    """Adaptive execution on or off."""
    return conf(spark, {"spark.sql.adaptive.enabled": value})


@contextmanager
def conf(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Settings of a session, which are those of before at the end."""
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, value)
