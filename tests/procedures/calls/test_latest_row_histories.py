"""Random histories of changed rows, compaction by key and other maintenance, against rows kept by hand in Python."""

import random
from collections import Counter, defaultdict

import pytest

import sql_ext

pytestmark = pytest.mark.slow

SCHEMA = "a BIGINT, b STRING, p STRING, ts DOUBLE, v BIGINT"
FEATURES = {
    "delta.enableDeletionVectors": "true",
    "delta.enableRowTracking": "true",
    "delta.columnMapping.mode": "name",
    "delta.enableChangeDataFeed": "true",
}
NAMES = "a", "b", "p", "ts", "v"


def latest(rows, ties):
    """The rows that stay, by a rule that shares no code with the strategy."""
    of_key = defaultdict(list)
    for row in rows.elements():
        of_key[row[:2]].append(row)
    kept = Counter()
    for key, members in of_key.items():
        if None in key:
            kept.update(members)
            continue
        greatest = max(row[3] for row in members)
        top = [row for row in members if row[3] == greatest]
        kept.update(top if ties == "all" else top[:1])
    return kept


class History:
    """A table, and the rows that it must have."""

    def __init__(self, spark, new_table, chance):
        self.spark, self.chance = spark, chance
        self.properties = {k: v for k, v in FEATURES.items() if chance.random() < 0.5}
        self.is_indexed = chance.random() < 0.4
        self.table = new_table(
            SCHEMA,
            index="a,ts" if self.is_indexed else None,
            cube_size=20 if self.is_indexed else None,
            properties=self.properties,
            tail="PARTITIONED BY (p)" if chance.random() < 0.5 else "",
        )
        self.rows = Counter()

    def append(self):
        rows = [
            (
                self.chance.choice((None, *range(12))),
                self.chance.choice(("x", "y", "")),
                self.chance.choice(("a b", "ä/c=1", "50%+", None)),
                self.chance.choice((-1.5, 0.0, float(self.chance.randrange(9)))),
                self.chance.randrange(3),
            )
            for _ in range(self.chance.choice((1, 8, 40)))
        ]
        self.rows.update(rows)
        self.table.append(self.spark.createDataFrame(rows, SCHEMA), files=self.chance.choice((1, 3)))

    def delete(self):
        value = self.chance.randrange(9)
        self.table.sql(f"DELETE FROM {{t}} WHERE ts = {value}")
        self.rows = Counter({row: n for row, n in self.rows.items() if row[3] != value})

    def index(self):
        if self.is_indexed:
            self.table.optimize()

    def cluster(self):
        self.table.optimize(strategy="SizeTieredClustering", options={"min_files": "2"})

    def optimize_by_delta(self):
        self.table.sql("OPTIMIZE {t}")

    def compact(self):
        ties = self.chance.choice(("all", "any"))
        before = self.table.version
        given = {"bytes_per_iter": self.chance.choice((None, 2000))}
        call = {"primary_key": ["a", "b"], "order_by": "ts", "ties": ties, **given}
        report = sql_ext.call(self.spark, "compact", table=self.table.name, **call).collect()
        assert report[-1].state == "committed" or report[-1].reason == "NOTHING_TO_DO"
        old, new = self.rows, self.seen()
        expected = latest(old, ties)
        if ties == "all":
            assert new == expected
        else:
            # Any one of the latest rows of a key.
            assert sum(new.values()) == sum(expected.values())
            assert not new - old
            assert {row[:2] for row in new} == {row[:2] for row in old}
            assert latest(new, "all") == new
            assert all(row[3] == max(r[3] for r in old if r[:2] == row[:2]) for row in new if None not in row[:2])
        self.rows = new
        if "delta.enableChangeDataFeed" in self.properties and self.table.version > before:
            changes = self.spark.sql(f"SELECT * FROM table_changes('{self.table.name}', {before + 1})").collect()
            assert {row._change_type for row in changes} <= {"delete"}
            assert Counter(tuple(row[name] for name in NAMES) for row in changes) == old - new

    def seen(self):
        return Counter(map(tuple, self.table.data.select(*NAMES).collect()))

    def step(self):
        others = self.append, self.append, self.append, self.delete, self.index, self.cluster, self.optimize_by_delta
        chosen = self.chance.choice((*others, self.compact, self.compact, self.compact))
        chosen()
        assert self.seen() == self.rows, chosen.__name__


@pytest.mark.parametrize("seed", range(6))
def test_the_latest_row_of_each_key_stays_and_no_key_is_lost(spark, new_table, seed):
    history = History(spark, new_table, random.Random(seed))
    versions = {}
    history.append()
    for _ in range(14):
        history.step()
        versions[history.table.version] = Counter(history.rows)
    for version, rows in versions.items():
        past = spark.sql(f"SELECT * FROM {history.table.name} VERSION AS OF {version}").select(*NAMES)
        assert Counter(map(tuple, past.collect())) == rows
