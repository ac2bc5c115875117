"""Runs that remove rows, of tables that are replaced by other ones meanwhile: no row of the new table is removed."""

import pytest

import sql_ext
from catalog.errors import ConcurrentChangeError
from procedures.calls import fleet
from procedures.loop.planner import TablePlanner
from procedures.service.service import Service

KEEPS_THE_LATEST = {
    "use.compaction.primaryKey": "id",
    "use.compaction.orderBy": "at",
    "use.compaction.interval": "1 hour",
    "use.optimization.quietPeriod": "0",
}
COLUMNS = "id BIGINT, at BIGINT, other BIGINT"
MAPPED = {"delta.columnMapping.mode": "name"}


def two_rows_of_each_key(spark, table, keys=10, files=2):
    for at in range(files):
        table.append(spark.range(keys).selectExpr("id", f"id + {at} AS at", "id % 2 AS other"))
    return table


@pytest.mark.slow
@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE OR REPLACE TABLE {t} USING delta AS SELECT id % 5 AS id, id AS at, id AS other FROM range(20)"],
        ["ALTER TABLE {t} RENAME COLUMN id TO key", "ALTER TABLE {t} RENAME COLUMN other TO id"],
    ],
    ids=["replaced", "renamed columns"],
)
def test_a_call_ends(spark, new_table, monkeypatch, statements):
    """It named columns of the table as it was."""
    table = two_rows_of_each_key(spark, new_table(COLUMNS, properties=MAPPED), files=3)
    planned, rows = TablePlanner.plan, []

    def plan(self, request):
        if rows == []:
            rows.append(0)
        else:
            for statement in statements:
                table.sql(statement)
            rows[:] = [table.data.count()] * 2
        return planned(self, request)

    monkeypatch.setattr(TablePlanner, "plan", plan)
    with pytest.raises(ConcurrentChangeError, match=r"replaced|renamed"):
        sql_ext.call(
            spark, "compact", table=table.name, primary_key=["id"], order_by="at", bytes_per_iter=1, max_iterations=2
        ).collect()
    assert len(rows) == 2
    assert table.data.count() == rows[0]


class LaterThreads(list):
    """Threads of the service that begin when they are told to."""

    def __call__(self, name, work):
        self.append(work)

    def run(self):
        while self:
            self.pop(0)()


@pytest.fixture
def service(spark, set_conf):
    set_conf("spark.qbeast.use.service.enabled", "true")
    threads = LaterThreads()
    service = Service(spark, spawn=threads)
    yield service, threads
    service.stop()


def test_the_service_finds_another_table_of_the_name(spark, new_table, service):
    service, threads = service
    first = two_rows_of_each_key(spark, new_table(COLUMNS, properties=KEEPS_THE_LATEST))
    other = two_rows_of_each_key(spark, new_table(COLUMNS))
    service.tick()
    assert threads
    spark.sql(f"ALTER TABLE {first.name} RENAME TO {first.name}_old")
    spark.sql(f"ALTER TABLE {other.name} RENAME TO {first.name}")
    threads.run()
    assert first.data.count() == 20
    spark.sql(f"DROP TABLE {first.name}_old")


def test_the_service_finds_a_new_table_at_the_place(spark, new_table, service):
    service, threads = service
    table = two_rows_of_each_key(spark, new_table(COLUMNS, properties=KEEPS_THE_LATEST))
    service.tick()
    assert threads
    table.sql("DROP TABLE {t}")
    table.sql(f"CREATE TABLE {{t}} ({COLUMNS}) USING delta")
    two_rows_of_each_key(spark, table)
    threads.run()
    assert table.data.count() == 20


@pytest.mark.slow
def test_a_location_may_be_a_link(spark, new_table, service, tmp_path):
    service, threads = service
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    linked = new_table(COLUMNS, properties=KEEPS_THE_LATEST, tail=f"LOCATION '{tmp_path}/link/t'")
    table = two_rows_of_each_key(spark, linked)
    service.tick()
    threads.run()
    assert table.data.count() == 10


@pytest.mark.slow
@pytest.mark.parametrize("statement", ["UNSET", "REPLACE", None])
def test_a_call_for_the_fleet_looks_at_the_properties_again(spark, new_table, monkeypatch, statement):
    """Other tables have their turns between the look at a table and its turn."""
    table, turn = two_rows_of_each_key(spark, new_table(COLUMNS, properties=KEEPS_THE_LATEST)), fleet._turn

    def later(spark, member):
        if statement == "UNSET":
            keys = ", ".join(f"'{key}'" for key in KEEPS_THE_LATEST)
            table.sql(f"ALTER TABLE {{t}} UNSET TBLPROPERTIES ({keys})")
        elif statement == "REPLACE":
            properties = ", ".join(f"'{key}' = '{value}'" for key, value in KEEPS_THE_LATEST.items())
            table.sql(f"CREATE OR REPLACE TABLE {{t}} ({COLUMNS}) USING delta TBLPROPERTIES ({properties})")
            two_rows_of_each_key(spark, table)
        return turn(spark, member)

    monkeypatch.setattr(fleet, "_turn", later)
    rows = {row.table: row for row in spark.sql("CALL use.fleet()").collect()}
    (row,) = [row for name, row in rows.items() if name is not None and table.name in name]
    assert row.state == ("optimized" if statement is None else "failed")
    assert table.data.count() == (10 if statement is None else 20)
    assert statement is None or row.reason.startswith("USE_CONCURRENT_CHANGE")
