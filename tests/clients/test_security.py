"""Who is let in, what is heard of the token, and what those who are in can do with a CALL."""

import contextlib
import socket
import urllib.request
from http.client import HTTPException

import process_tree
import pytest
from server_process import Server, ServerProcess
from sql_clients import CLIENTS, ClientError, ConnectClient, PyHiveClient

WRONG = "not-the-token-of-this-server"
REFUSED = r"Error validating the login|Invalid authentication token|UNAUTHENTICATED"


@pytest.fixture(scope="module")
def loud_server(tmp_path_factory):
    """A server that tells all it can: the finest log, an event log, Spark's web pages."""
    folder = tmp_path_factory.mktemp("loud")
    events = folder / "events"
    events.mkdir()
    conf = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": str(events), "spark.ui.enabled": "true"}
    running = Server(folder, "--log-level=DEBUG", conf=conf)
    try:
        running.wait_until_ready()
        yield running
    finally:
        running.stop()


@pytest.mark.parametrize("kind", CLIENTS)
def test_a_wrong_token_is_refused(server, kind):
    with pytest.raises(Exception, match=REFUSED) as refused, CLIENTS[kind](server, WRONG) as let_in:
        let_in.run("SELECT 1")
    assert WRONG not in str(refused.value)
    assert server.token not in str(refused.value)


@pytest.mark.parametrize("kind", [PyHiveClient, ConnectClient], ids=["pyhive", "connect"])
def test_no_token_and_near_ones_are_refused(server, kind):
    near = ["", server.token + "1"]
    if kind is PyHiveClient:  # no process for each
        near += [" ", "x", server.token[:-1], server.token * 2, server.token.swapcase()]
    for token in near:
        with pytest.raises(Exception, match=REFUSED), kind(server, token) as let_in:
            let_in.run("SELECT 1")


def test_who_skips_the_handshake_hears_nothing(server):
    with socket.create_connection(("127.0.0.1", server.jdbc_port), timeout=30) as bare:
        bare.sendall(b"\x80\x01\x00\x01\x00\x00\x00\x0bOpenSession\x00\x00\x00\x00")
        bare.shutdown(socket.SHUT_WR)
        heard = b""
        while part := bare.recv(4096):
            heard += part
    assert b"session" not in heard.lower()


def test_only_loopback_listens(server):
    """The servers, Spark's own ports, and those between Python and the JVM."""
    found = process_tree.listening(process_tree.tree(server.process.pid))
    assert {server.jdbc_port, server.connect_port} < set(found)
    assert len(found) >= 5
    assert {port: str(address) for port, address in found.items() if not address.is_loopback} == {}


def test_the_ports_of_spark_ask_for_a_secret(onlooker):
    settings = dict(onlooker.run("SET"))
    assert settings["spark.authenticate"] == "true"
    assert settings["spark.ui.enabled"] == "false"
    assert settings["spark.ui.killEnabled"] == "false"


def page_text(port: int, page: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=5) as answer:
        return answer.read().decode("utf-8", errors="replace")


def test_the_token_is_nowhere(loud_server):
    with PyHiveClient(loud_server) as client:
        client.run("CREATE TABLE t (id INT) USING delta TBLPROPERTIES ('use.index.columns' = 'id')")
        client.run("INSERT INTO t VALUES (1)")
        client.run("CALL use.optimize('t')")
        texts = {
            "SET": str(client.run("SET")),
            "SET -v": str(client.run("SET -v")),
            "the setting": str(client.run("SET spark.connect.authenticate.token")),
            "properties": str(client.run("SHOW TBLPROPERTIES t")),
            "history": str(client.run("SELECT * FROM t.optimizations")),
        }
        with pytest.raises(ClientError) as failed:
            client.run("CALL use.optimize('nope')")
        texts["error"] = failed.value.text
    with ConnectClient(loud_server) as client:
        texts["SET of Spark Connect"] = str(client.run("SET")) + str(client.run("SET spark.connect.authenticate.token"))
    for kind in (PyHiveClient, ConnectClient):
        with pytest.raises(Exception, match=REFUSED):
            kind(loud_server, WRONG)
    for pid in process_tree.tree(loud_server.process.pid):
        texts[f"process {pid}"] = process_tree.seen_from_outside(pid).decode("utf-8", errors="replace")
    pages = 0
    for port in process_tree.listening(process_tree.tree(loud_server.process.pid)):
        for page in ("environment/", "api/v1/applications", "sqlserver/"):
            # Most of the ports do not speak HTTP.
            with contextlib.suppress(OSError, HTTPException):
                texts[f"{port}/{page}"] = page_text(port, page)
                pages += 1
    assert pages == 3
    assert loud_server.stop() == 0
    texts["log"] = loud_server.output
    assert "DEBUG" in texts["log"]
    for file in loud_server.folder.rglob("*"):
        if file.is_file() and file != loud_server.token_file:
            texts[str(file)] = file.read_bytes().decode("utf-8", errors="replace")
    assert any("events" in place for place in texts)
    assert [place for place, text in texts.items() if loud_server.token in text] == []
    assert [place for place, text in texts.items() if WRONG in text] == []


def test_warnings_of_an_open_server(tmp_path):
    where = ("--warehouse", tmp_path / "w", "--port=0")
    open_server = ServerProcess(tmp_path / "log", *where, "--auth=none", "--host=0.0.0.0")
    try:
        open_server.wait_until_ready()
        assert "warning: --auth none: anyone on the network that reaches 0.0.0.0 can read" in open_server.said[0]
        assert not any("token" in line for line in open_server.said)
        open_server.token = "whatever"
        with PyHiveClient(open_server) as client:
            assert client.run("SELECT 1") == [(1,)]
    finally:
        assert open_server.stop() == 0


# ------------------------------------------------------------------------------------------ arguments are data


def nasty(canary) -> list[str]:
    touch = f"__import__('pathlib').Path('{canary}').touch()"
    return [
        "'; DROP TABLE keep; --",
        "keep'); DROP TABLE keep; --",
        "(SELECT java_method('java.lang.System', 'exit', 1))",
        touch,
        f"{{{touch}}}",
        f"$(touch {canary})`touch {canary}`",
        "__class__.__mro__",
        "{0.__class__.__init__.__globals__}%s%n%(x)s",
        "../../../etc/passwd",
        "delta.`../../etc`",
        f"file://{canary}",
        "a\nb\r\n'c'\t\"d\"\\",
        "ключ 表 \U0001f600 \u202e",
        "\u0000",
        "x" * 100_000,
        "",
        " ",
        "-1",
        "NaN",
        "null",
        '{"a": 1}',
    ]


def refusal(client, call: str, text: str) -> str | None:
    """What is said against the call; None when it is answered."""
    try:
        client.run(call, text)
    except ClientError as error:
        return error.text
    return None


def test_arguments_are_data(server, onlooker, tmp_path, new_name):
    """Nasty texts for every text of every procedure are refused in one line, or found, and do nothing else."""
    keep = new_name()
    onlooker.run(f"CREATE TABLE {keep} (id INT) USING delta TBLPROPERTIES ('use.index.columns' = 'id')")
    onlooker.run(f"INSERT INTO {keep} VALUES (1), (2)")
    canary = tmp_path / "canary"
    texts = [text.replace("keep", keep) for text in nasty(canary)]
    known = onlooker.run("CALL use.help()")
    procedures = sorted({row[0] for row in known})
    assert len(procedures) >= 10
    refused, odd = 0, []
    for number, name in enumerate(procedures):
        parameters = [row for row in onlooker.run("CALL use.help(%s)", name) if row[1] == "STRING"]
        for place, parameter in enumerate(row[0] for row in parameters if row[0].islower()):
            # All texts are tried as a table; of the others each parameter gets some.
            chosen = texts if parameter == "table" and number % 3 == 0 else texts[(number + place) % 4 :: 4]
            with_table = parameter != "table" and "table" in {row[0] for row in parameters}
            table = f"table => '{keep}', " if with_table else ""
            for text in chosen:
                said = refusal(onlooker, f"CALL use.{name}({table}{parameter} => %s)", text)
                refused += said is not None
                if said is not None and ("USE_INTERNAL" in said or "Traceback" in said or "\tat " in said):
                    odd.append((name, parameter, text[:40], said[:300]))
    assert refused > 50
    assert odd == []
    assert not canary.exists()
    assert onlooker.run(f"SELECT count(*) FROM {keep}") == [(2,)]
