"""Every client runs the same script: what a user of the product does, through what a user has."""

import contextlib
import re

import pytest
from client_tables import MANY, STATE, checksum, committed, many_files, running
from server_process import wait_for
from sql_clients import ClientError


def test_a_table_from_its_creation_to_its_history(client, new_name):
    name = new_name()
    client.run(f"CREATE TABLE {name} (id BIGINT, x DOUBLE) USING delta")
    client.run(f"INSERT INTO {name} SELECT id, rand(1) FROM range(1000)")
    client.run(f"ALTER TABLE {name} SET TBLPROPERTIES ('use.index.columns' = 'id,x')")

    assert client.run(f"CALL use.optimize(table => '{name}', dry_run => true)")[0][STATE] == "planned"
    if client.placeholder:
        marks = client.placeholder, client.placeholder
        planned = client.run(
            "CALL use.optimize(table => {}, max_iterations => {}, dry_run => true)".format(*marks), name, 1
        )
        assert planned[0][STATE] == "planned"
    assert client.run(f"CALL use.optimize('{name}')")[0][STATE] == "committed"
    assert client.run(f"CALL use.optimize('{name}')")[0][STATE] == "skipped"

    assert [int(row[0]) for row in client.run(f"SELECT count(*) FROM {name}")] == [1000]
    assert 0 < int(client.run(f"SELECT count(*) FROM {name} TABLESAMPLE (10 PERCENT)")[0][0]) < 1000
    history = client.run(f"SELECT optimization_name, state, trigger FROM {name}.optimizations")
    assert history == [("UnindexedFiles", "committed", "call")]
    summary = client.run(
        "SELECT name, unindexed_files, table_properties['use.index.columns'] "
        f"FROM use_catalog.system_lake_tables.metastore_summary WHERE name = '{name}'"
    )
    assert [(row[0], int(row[1]), row[2]) for row in summary] == [(name, 0, "id,x")]


def test_a_manual_trigger_runs_in_the_background(client, onlooker, new_name):
    name = new_name()
    many_files(onlooker, name, 2)
    client.run(
        f"ALTER TABLE use_catalog.spark_catalog.default.{name} SET TBLPROPERTIES "
        "('use.optimization.type' = 'UnindexedFiles')"
    )

    def triggers():
        return client.run(f"SELECT trigger, state FROM {name}.optimizations")

    wait_for(triggers, "the event of the manual trigger")
    assert triggers() == [("manual", "committed")]


def test_a_refusal_is_one_line_with_its_condition(client):
    with pytest.raises(ClientError) as refused:
        client.run("CALL use.optimize('no_such_table')")
    said = refused.value
    assert "[USE_TABLE_NOT_FOUND] table = 'no_such_table' was not found" in said.text
    assert said.text.count("USE_TABLE_NOT_FOUND") == 1
    assert "\n" not in said.text.strip()
    assert not re.search(r"\bat (org|io|java)\.|Exception|Traceback", said.text), said.text
    assert "42P01" in (said.sql_state or said.text)
    # The connection is as good as before.
    assert [int(row[0]) for row in client.run("SELECT 1")] == [1]


def test_cancel_ends_at_a_boundary(client, onlooker, new_name):
    name = new_name()
    call, before = many_files(onlooker, name), None
    before = checksum(onlooker, name)
    client.begin(call)
    wait_for(lambda: committed(onlooker, name), "the first group is committed")
    client.cancel()
    with contextlib.suppress(ClientError):  # some clients tell it as an error
        client.result()
    wait_for(lambda: not running(onlooker, name), "the run ends, and frees the lease")
    done = committed(onlooker, name)
    assert 0 < done < MANY
    states = onlooker.run(f"SELECT DISTINCT state FROM {name}.optimizations")
    assert states == [("committed",)]
    assert checksum(onlooker, name) == before
    # The lease is free, and the rest is still to do.
    assert onlooker.run(call.replace("options", "max_iterations => 1, options"))[0][STATE] == "committed"
    assert committed(onlooker, name) == done + 1
    assert checksum(onlooker, name) == before
    assert [int(row[0]) for row in client.run("SELECT 1")] == [1]
