"""What other processes of the machine can do with the server on which the JVM calls Python. No Spark."""

import contextlib
import os
import select
import socket
import threading

import loopback
import process_tree
import pytest
from py4j.clientserver import JavaParameters, PythonParameters
from py4j.java_gateway import GatewayProperty, PythonProxyPool

from sql_ext.callback_server import MOST_UNAUTHENTICATED, SECONDS_TO_AUTHENTICATE, CallbackServer

TOKEN = "0123456789abcdef" * 4
AUTHENTICATE = f"A\n{TOKEN}\ne\n"
WELCOME = b"!yv\n"


class Handler:
    """Stands for the bridge's."""

    class Java:
        implements = ("io.usespark.PythonHandler",)

    field = "a field"

    def __init__(self):
        self._secret = "a secret"
        self.calls = []

    def handle(self, *arguments):
        self.calls.append(arguments)
        return f"answer {len(self.calls)}"


class Gateway:
    """What the server needs of PySpark's."""

    def __init__(self):
        self.java_parameters = JavaParameters()
        self.python_parameters = PythonParameters(port=0)
        self.gateway_property = GatewayProperty(False, PythonProxyPool())
        self._gateway_client = self

    def set_thread_connection(self, connection):
        pass


class Door:
    """A running server, the handler behind it, and the time that it sees."""

    def __init__(self):
        self.now = 0.0
        self.handler = Handler()
        gateway = Gateway()
        self.pool = gateway.gateway_property.pool
        self.id = self.pool.put(self.handler)
        self.server = CallbackServer(gateway, TOKEN, lambda: self.now)
        self.server.start()

    @property
    def port(self):
        return self.server.port

    def stop(self):
        self.server.is_shutdown = True
        loopback.connect(self.port).close()  # wakes it
        self.server.thread.join(loopback.SECONDS)
        self.server.server_socket.close()


@pytest.fixture
def door():
    running = Door()
    yield running
    running.stop()


@contextlib.contextmanager
def authenticated(door):
    """A connection as the JVM makes it."""
    with loopback.connect(door.port) as connection:
        connection.sendall(AUTHENTICATE.encode())
        stream = connection.makefile("rb")
        assert stream.readline() == WELCOME

        def ask(command):
            connection.sendall(command.format(id=door.id).encode())
            return stream.readline().decode().rstrip()

        yield ask


def is_closed(connection):
    return bool(select.select([connection], [], [], 0)[0])


def test_it_listens_on_loopback_only(door):
    assert str(process_tree.listening([os.getpid()])[door.port]) == "127.0.0.1"


@pytest.mark.parametrize("command", loopback.COMMANDS)
def test_no_command_is_answered_without_the_token(door, command):
    assert loopback.answer_to(door.port, command.format(id=door.id)) == b""
    assert door.handler.calls == []
    assert door.id in door.pool


@pytest.mark.parametrize(
    "bytes_",
    [
        b"",
        b"A",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\x00" * 1000,
        b"A\n" + b"x" * 1_000_000,
        b"x" * 1_000_000,
        AUTHENTICATE[:-1].encode(),
        AUTHENTICATE.replace("9", "8", 1).encode(),
        AUTHENTICATE.swapcase().encode(),
        f"A\n{TOKEN}x\ne\n".encode(),
        f"A\r\n{TOKEN}\r\ne\r\n".encode(),
        f" A\n{TOKEN}\ne\n".encode(),
        f"A\nwrong\ne\n{AUTHENTICATE}".encode(),
    ],
)
def test_what_is_not_the_token_is_not_answered(door, bytes_):
    assert loopback.answer_to(door.port, bytes_) == b""


def test_the_token_lets_the_handler_be_called(door):
    with authenticated(door) as ask:
        assert ask("c\n{id}\nhandle\nscall\ne\n") == "!ysanswer 1"
        assert ask("c\n{id}\nhandle\ni7\nsb\ne\n") == "!ysanswer 2"
    assert door.handler.calls == [("call",), (7, "b")]


def test_the_token_may_come_in_parts(door):
    with loopback.connect(door.port) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for letter in AUTHENTICATE:
            connection.sendall(letter.encode())
        assert connection.recv(100) == WELCOME


@pytest.mark.parametrize(
    "name",
    ["_secret", "__class__", "__init__", "__getattribute__", "__dict__", "__reduce_ex__", "Java", "field", "calls"],
)
def test_the_token_calls_public_methods_only(door, name):
    with authenticated(door) as ask:
        answer = ask(f"c\n{{id}}\n{name}\ne\n")
        assert answer.startswith("!x")
        assert f"{name} is no public method" in answer
        assert "a secret" not in answer
        assert ask("c\n{id}\nhandle\ne\n") == "!ysanswer 1"


def test_the_jvm_drops_objects_that_it_no_longer_holds(door):
    with authenticated(door) as ask:
        assert ask("g\n{id}\ne\n").startswith("!y")
    assert door.id not in door.pool


def test_half_open_connections_end(door):
    with loopback.connect(door.port) as silent, loopback.connect(door.port) as slow:
        slow.sendall(AUTHENTICATE[:20].encode())
        with authenticated(door):  # they were accepted before it
            assert not is_closed(silent)
            door.now += SECONDS_TO_AUTHENTICATE + 1
            with authenticated(door):
                pass
            assert loopback.heard(silent) == b""
            assert loopback.heard(slow) == b""


def test_an_authenticated_connection_stays(door):
    with authenticated(door) as ask:
        door.now += 1_000_000
        with authenticated(door) as other:
            other("c\n{id}\nhandle\ne\n")
        assert ask("c\n{id}\nhandle\ne\n") == "!ysanswer 2"


def test_a_flood_costs_no_thread_and_does_not_keep_the_jvm_out(door):
    threads = threading.active_count()
    with contextlib.ExitStack() as held, authenticated(door) as before:
        flood = [held.enter_context(loopback.connect(door.port)) for _ in range(5 * MOST_UNAUTHENTICATED)]
        for connection in flood[::2]:
            with contextlib.suppress(OSError):
                connection.sendall(b"A\n0123")
        with authenticated(door) as ask:
            assert ask("c\n{id}\nhandle\ne\n") == "!ysanswer 1"
            assert before("c\n{id}\nhandle\ne\n") == "!ysanswer 2"
            # Threads of earlier tests may end meanwhile.
            assert threading.active_count() <= threads + 2
        assert sum(not is_closed(connection) for connection in flood) <= MOST_UNAUTHENTICATED


def test_a_flood_is_one_line_of_the_log(door, caplog):
    for _ in range(20):
        assert loopback.answer_to(door.port, "g\np0\ne\n") == b""
    door.now += 1
    with authenticated(door):
        pass
    warnings = [record.getMessage() for record in caplog.records if record.name == "sql_ext.callback_server"]
    assert len(warnings) <= 2
    assert all("had no valid token" in line and TOKEN not in line for line in warnings)


def test_a_process_without_free_descriptors_goes_on(door, monkeypatch):
    failures = iter([OSError(24, "Too many open files")])
    accept = socket.socket.accept

    def failing(self):
        for error in failures:
            raise error
        return accept(self)

    monkeypatch.setattr(socket.socket, "accept", failing)
    with authenticated(door) as ask:
        assert ask("c\n{id}\nhandle\ne\n") == "!ysanswer 1"
