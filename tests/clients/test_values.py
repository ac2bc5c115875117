"""Values and metadata as drivers give them, and what only the JDBC driver has."""

import json
from datetime import datetime
from decimal import Decimal

import pytest
from client_tables import checksum, committed, many_files, running
from server_process import wait_for
from sql_clients import ClientError, ConnectClient, ImpylaClient, JdbcClient, PyHiveClient

VALUES = (
    "SELECT TIMESTAMP '2020-01-02 03:04:05' AS moment, MAP('a', 1) AS map, ARRAY(1, 2) AS list, "
    "NAMED_STRUCT('a', 1, 'b', 'x') AS fields, CAST(1.5 AS DECIMAL(10, 2)) AS exact, CAST(NULL AS INT) AS nothing, "
    "true AS yes, CAST(2.5 AS DOUBLE) AS number, 'ключ' AS text"
)


@pytest.fixture(scope="module")
def jdbc(server):
    with JdbcClient(server) as connected:
        yield connected


@pytest.mark.parametrize("kind", [PyHiveClient, ImpylaClient], ids=["pyhive", "impyla"])
def test_values_of_the_db_api(server, kind, onlooker, new_name):
    with kind(server) as client:
        moment, pairs, items, fields, *rest = client.run(VALUES)[0]
        assert moment == datetime(2020, 1, 2, 3, 4, 5)  # noqa: DTZ001  # as the driver gives it
        assert [json.loads(text) for text in (pairs, items, fields)] == [{"a": 1}, [1, 2], {"a": 1, "b": "x"}]
        assert rest == [Decimal("1.50"), None, True, 2.5, "ключ"]

        name = new_name()
        onlooker.run(many_files(onlooker, name, 2).replace("'1')", "'100000000')"))
        columns = [row[0] for row in client.run(f"DESCRIBE {name}.optimizations")]
        (event,) = client.run(f"SELECT * FROM {name}.optimizations")
        told = dict(zip(columns, event, strict=True))
        assert (told["kind"], told["trigger"], told["state"], told["error"]) == ("optimize", "call", "committed", None)
        assert json.loads(told["input_files_stats"])["num_files"] == 2
        assert json.loads(told["parameters"])["strategy"] == "UnindexedFiles"
        assert isinstance(told["version"], int)


def test_values_of_jdbc_and_connect(server, jdbc):
    assert jdbc.run(VALUES)[0][4:] == (1.5, None, True, 2.5, "ключ")
    with ConnectClient(server) as connect:
        assert connect.run(VALUES)[0][5:] == (None, True, 2.5, "ключ")


def test_what_tools_ask_for_first(jdbc, onlooker, new_name):
    name = new_name()
    many_files(onlooker, name, 1)
    assert "default" in [row[0] for row in jdbc.ask(do="schemas")]
    assert [row[2:4] for row in jdbc.ask(do="tables", pattern=name)] == [[name, "TABLE"]]
    columns = [("id", "BIGINT"), ("x", "DOUBLE")]
    assert [(row[3], row[5]) for row in jdbc.ask(do="columns", pattern=name)] == columns
    onlooker.run(f"ALTER TABLE {name} ADD COLUMNS (y STRING)")
    wait_for(
        lambda: [(row[3], row[5]) for row in jdbc.ask(do="columns", pattern=name)] == [*columns, ("y", "STRING")],
        "the metastore is told of a new column",
    )
    assert [row[:2] for row in jdbc.run(f"DESCRIBE {name}")][:2] == [("id", "bigint"), ("x", "double")]


def test_a_query_timeout_ends_at_a_boundary(jdbc, onlooker, new_name):
    name = new_name()
    call = many_files(onlooker, name, 30)
    before = checksum(onlooker, name)
    jdbc.begin(call, seconds=10)
    with pytest.raises(ClientError, match="timed out"):
        jdbc.result()
    wait_for(lambda: not running(onlooker, name), "the run ends")
    assert committed(onlooker, name) < 30
    assert checksum(onlooker, name) == before


def test_parameters_are_quoted(jdbc):
    text = "a'b\"c\n%s ? é"  # no backslash: the driver itself does not escape it
    assert jdbc.run("SELECT ?, ?, ?", text, 7, True) == [(text, 7, True)]
