"""Servers and the clients that come and go: restarts, signals, a second server, two clients at once."""

import os
import signal

import process_tree
import pytest
from client_tables import MANY, MESSAGE, STATE, checksum, committed, many_files, running
from server_process import Server, ServerProcess, wait_for
from sql_clients import JdbcClient, PyHiveClient
from thrift.transport.TTransport import TTransportException


@pytest.fixture
def own_server(tmp_path):
    """A server of the test's own, which may end it."""
    started = Server(tmp_path)
    started.wait_until_ready()
    yield started
    started.stop()


def test_connections_come_and_go(server, onlooker, new_name):
    """Thirty clients leave nothing behind, and the jars outlive the first who left."""
    name = new_name()
    many_files(onlooker, name, 2)
    counts = []
    for _ in range(3):
        for _ in range(10):
            with PyHiveClient(server) as passing:
                passing.run(f"CALL use.optimize('{name}', dry_run => true)")
        counts.append(process_tree.threads(server.process.pid))
    assert max(counts[1:]) <= counts[0] + 1, counts


def test_two_optimizations_at_once(server, onlooker, new_name):
    """On two tables both go on, while others read; on one table the second is told who has it."""
    first, second = new_name(), new_name()
    calls = {name: many_files(onlooker, name, 6) for name in (first, second)}
    before = {name: checksum(onlooker, name) for name in calls}
    with PyHiveClient(server) as one, PyHiveClient(server) as other:
        one.begin(calls[first])
        other.begin(calls[second])
        wait_for(lambda: running(onlooker, first) and running(onlooker, second), "both run")
        with PyHiveClient(server) as third:
            late = third.run(calls[first])
        assert late[0][STATE] == "skipped"
        assert "LEASE_HELD" in late[0]
        while running(onlooker, first):
            assert {name: checksum(onlooker, name) for name in calls} == before
        assert [row[STATE] for row in one.result()] == ["committed"] * 6
        assert [row[STATE] for row in other.result()] == ["committed"] * 6
    assert {name: committed(onlooker, name) for name in calls} == {first: 6, second: 6}
    assert {name: checksum(onlooker, name) for name in calls} == before


def test_a_client_that_vanishes_ends_its_optimization_at_a_boundary(server, onlooker, new_name):
    name = new_name()
    call = many_files(onlooker, name)
    before = checksum(onlooker, name)
    client = JdbcClient(server)
    client.begin(call)
    wait_for(lambda: committed(onlooker, name), "the first group is committed")
    client._process.process.kill()
    client.close()
    wait_for(lambda: not running(onlooker, name), "the run ends")
    assert 0 < committed(onlooker, name) < MANY
    assert checksum(onlooker, name) == before


def test_a_signal_lets_the_group_finish_and_tables_survive(own_server, tmp_path):
    with PyHiveClient(own_server) as client, PyHiveClient(own_server) as onlooker:
        call = many_files(onlooker, "t")
        before = checksum(onlooker, "t")
        client.begin(call)
        wait_for(lambda: committed(onlooker, "t"), "the first group is committed")
        own_server.ask_to_end()
        try:
            rows = client.result()
        except TTransportException:  # too slow to fetch them before the server was gone
            rows = []
        assert {row[STATE] for row in rows[:-1]} <= {"committed"}
        assert [(*row[1:4], "the server is stopping" in row[MESSAGE]) for row in rows[-1:]] in (
            [(None, "INTERRUPTED", "skipped", True)],
            [],
        )
    assert own_server.wait() == 0, own_server.output
    assert any("stopping after the current groups are committed" in line for line in own_server.said)
    assert "Traceback" not in own_server.output

    again = Server(tmp_path)
    try:
        again.wait_until_ready()
        assert again.token == own_server.token
        with PyHiveClient(again) as onlooker:
            assert checksum(onlooker, "t") == before
            done = committed(onlooker, "t")
            assert 0 < done < MANY
            assert done == len(rows) - 1 or not rows
            rest = call.replace("options", "max_iterations => 1, options")
            assert onlooker.run(rest)[0][STATE] == "committed"
            assert checksum(onlooker, "t") == before

        refused = ServerProcess(tmp_path / "second.log", "--warehouse", again.warehouse, "--port=0", "--auth=none")
        assert refused.wait() == 1
        errors = [line for line in refused.said if "warning" not in line]
        assert len(errors) == 1
        assert errors[0].startswith("USE_WAREHOUSE_IN_USE: ")

        refused = ServerProcess(tmp_path / "third.log", "--warehouse", tmp_path / "new", f"--port={again.jdbc_port}")
        assert refused.wait() == 1
        assert len(refused.said) == 1
        assert refused.said[0].startswith(f"USE_PORT_IN_USE: port = {again.jdbc_port} on 127.0.0.1 is in use")
        assert not (tmp_path / "new").exists()

        again.process.send_signal(signal.SIGINT)
        assert again.wait() == 0, again.output
    finally:
        again.stop()


def test_a_server_ends_with_its_jvm(own_server):
    for child in process_tree.tree(own_server.process.pid)[1:]:
        os.kill(child, signal.SIGKILL)
    assert own_server.wait(60) == 1
    # Py4J logs the calls that were under way; no stack may be one of the command.
    assert "command_line.py" not in own_server.output
    assert "atexit" not in own_server.output
    assert own_server.said[-1].startswith("USE_SPARK_FAILED: Spark failed: it has stopped, or its JVM has ended.")
