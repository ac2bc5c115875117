"""The server on which the JVM calls Python: on 127.0.0.1, and only for connections that begin with its token.

PySpark starts Py4J's callback server without a token, so every process of the machine can use it. This one takes its
place, for our handler as well as for streaming queries and their listeners.
"""

from __future__ import annotations

import contextlib
import hmac
import inspect
import logging
import secrets
import selectors
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from py4j.clientserver import ClientServerConnection, PythonServer
from py4j.java_gateway import JavaObject, PythonProxyPool, quiet_close, quiet_shutdown
from py4j.protocol import AUTH_COMMAND_NAME, END, OUTPUT_VOID_COMMAND, Py4JJavaError
from pyspark import SparkContext

from catalog.clock import SYSTEM_CLOCK
from catalog.errors import NotSupportedError, first_line

logger = logging.getLogger(__name__)

HOST = "127.0.0.1"
SECONDS_TO_AUTHENTICATE = 5.0
# The JVM authenticates at once. Of the others, the oldest makes room for the newest.
MOST_UNAUTHENTICATED = 64
_TOKEN_BYTES = 32
_BACKLOG = 1024
_ACCEPTED_AT_ONCE = 16
_SECONDS_WITHOUT_DESCRIPTORS = 0.1
_SECONDS_BETWEEN_WARNINGS = 60.0

_lock = threading.Lock()


def start_callback_server(context: SparkContext) -> None:
    """Makes the JVM call Python on a server that requires a token; does nothing if it already does.

    A server without a token that PySpark has started, for a streaming query for example, takes no further connections
    and answers no further calls. Calls that run there end normally.

    Args:
        context: of this driver, with PySpark's pinned threads.

    Raises:
        NotSupportedError: a version of Py4J that cannot be given a token.
    """
    gateway: Any = context._gateway
    with _lock:
        # The gateway answers any attribute with a name in the JVM.
        present = gateway.__dict__.get("_callback_server")
        if isinstance(present, CallbackServer):
            return
        token = secrets.token_hex(_TOKEN_BYTES)
        server = CallbackServer(gateway, token)
        server.start()
        java_server = JavaObject("GATEWAY_SERVER", gateway._gateway_client)
        try:
            gateway.jvm.io.usespark.Bridge.instance().authenticateCallbacks(java_server, server.port, token)
        except Py4JJavaError as error:
            _retire(server)
            raise NotSupportedError(f"Callbacks from the JVM: {first_line(error.java_exception)}") from error
        # Keeps PySpark from starting one.
        gateway._callback_server = server
        gateway._python_proxy_port = server.port
        if present is not None:
            _retire(present)


def _retire(server: PythonServer) -> None:
    """Ends a server at once. Its own ``shutdown`` waits for ever for connections that read."""
    with server.lock:
        server.is_shutdown = True
        connections = list(server.connections)
    for connection in connections:
        connection.pool = PythonProxyPool()
    quiet_shutdown(server.server_socket)
    quiet_close(server.server_socket)


@dataclass(eq=False)
class _Unauthenticated:
    """A connection that has not sent the token yet.

    Attributes:
        socket: non-blocking.
        deadline: of the monotonic clock, in seconds.
        received: the bytes so far.
    """

    socket: socket.socket
    deadline: float
    received: bytearray = field(default_factory=bytearray)


class CallbackServer(PythonServer):  # type: ignore[misc]  # Py4J has no types
    """Py4J's server for one gateway, behind a token.

    One thread accepts connections and reads their tokens, so connections without one cost no thread. At most
    ``MOST_UNAUTHENTICATED`` of them are open, each for at most ``SECONDS_TO_AUTHENTICATE`` seconds, and of each no more
    bytes are read than the token has.

    Args:
        gateway: PySpark's, with pinned threads.
        token: without line ends.
        clock: seconds that never go back.
    """

    def __init__(self, gateway: Any, token: str, clock: Callable[[], float] = SYSTEM_CLOCK.monotonic) -> None:
        parameters = gateway.python_parameters
        # As PySpark does: the end of the interpreter waits for no callback.
        parameters.daemonize = parameters.daemonize_connections = True
        super().__init__(gateway._gateway_client, gateway.java_parameters, parameters, gateway.gateway_property)
        self.address, self.port = HOST, 0
        self._expected = f"{AUTH_COMMAND_NAME}\n{token}\n{END}\n".encode()
        self._clock = clock
        self._unauthenticated: list[_Unauthenticated] = []  # the oldest first
        self._refused = 0
        self._next_warning = clock()

    def start(self) -> None:
        """Listens on a free port of 127.0.0.1."""
        super().start()
        # Whichever thread is first: the JVM may connect from now on.
        self.server_socket.listen(_BACKLOG)
        self.port = self._listening_port

    def run(self) -> None:
        """Accepts connections until the process ends."""
        listener = self.server_socket
        listener.setblocking(False)
        listener.listen(_BACKLOG)
        with selectors.DefaultSelector() as selector:
            selector.register(listener, selectors.EVENT_READ)
            while not self.is_shutdown:
                ready = [key for key, _ in selector.select(SECONDS_TO_AUTHENTICATE / 5)]
                try:
                    # Tokens first: an authenticated connection does not count against new ones.
                    for key in ready:
                        if key.data is not None and key.data in self._unauthenticated:
                            self._read(selector, key.data)
                    if any(key.data is None for key in ready):
                        self._accept(selector, listener)
                    self._expire(selector)
                except Exception:  # one connection must not end the server
                    logger.exception("a connection to the callback port failed")

    def _accept(self, selector: selectors.BaseSelector, listener: socket.socket) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                accepted, _ = listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError:  # the process has no free descriptor
                time.sleep(_SECONDS_WITHOUT_DESCRIPTORS)
                return
            accepted.setblocking(False)
            if len(self._unauthenticated) >= MOST_UNAUTHENTICATED:
                self._refuse(selector, self._unauthenticated[0])
            connection = _Unauthenticated(accepted, self._clock() + SECONDS_TO_AUTHENTICATE)
            self._unauthenticated.append(connection)
            selector.register(accepted, selectors.EVENT_READ, connection)
            # The JVM sends its token with the connection.
            self._read(selector, connection)

    def _read(self, selector: selectors.BaseSelector, connection: _Unauthenticated) -> None:
        try:
            part = connection.socket.recv(len(self._expected) - len(connection.received))
        except BlockingIOError:
            return
        except OSError:
            part = b""
        connection.received += part
        command = f"{AUTH_COMMAND_NAME}\n".encode()
        # Another first command is no secret, and need not wait for the length of a token.
        if not part or not connection.received.startswith(command[: len(connection.received)]):
            self._refuse(selector, connection)
        elif len(connection.received) == len(self._expected):
            if hmac.compare_digest(connection.received, self._expected):
                self._admit(selector, connection)
            else:
                self._refuse(selector, connection)

    def _admit(self, selector: selectors.BaseSelector, authenticated: _Unauthenticated) -> None:
        selector.unregister(authenticated.socket)
        self._unauthenticated.remove(authenticated)
        accepted = authenticated.socket
        accepted.setblocking(True)
        accepted.sendall(OUTPUT_VOID_COMMAND.encode())
        connection = _Connection(
            self.java_parameters,
            self.python_parameters,
            self.gateway_property,
            self.gateway_client,
            python_server=self,
        )
        connection.init_socket_from_python_server(accepted, accepted.makefile("rb"))
        self.connections.add(connection)
        connection.start()

    def _expire(self, selector: selectors.BaseSelector) -> None:
        now = self._clock()
        while self._unauthenticated and self._unauthenticated[0].deadline <= now:
            self._refuse(selector, self._unauthenticated[0])
        if self._refused and now >= self._next_warning:
            logger.warning(
                "%d connections to the callback port %d had no valid token: another process of this machine uses it",
                self._refused,
                self.port,
            )
            self._refused = 0
            self._next_warning = now + _SECONDS_BETWEEN_WARNINGS

    def _refuse(self, selector: selectors.BaseSelector, connection: _Unauthenticated) -> None:
        selector.unregister(connection.socket)
        self._unauthenticated.remove(connection)
        with contextlib.suppress(OSError):
            connection.socket.close()
        self._refused += 1


class _Connection(ClientServerConnection):  # type: ignore[misc]  # Py4J has no types
    """An authenticated connection, which calls public methods of the objects that were given to the JVM."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.pool: Any = _PublicMethods(self.gateway_property.pool)


class _PublicMethods:
    """Py4J's pool of objects, which shows their public methods only.

    Args:
        pool: of the gateway.
    """

    def __init__(self, pool: PythonProxyPool) -> None:
        self._pool = pool

    def __contains__(self, identity: str) -> bool:
        return identity in self._pool

    def __getitem__(self, identity: str) -> Any:
        return _View(self._pool[identity])

    def __delitem__(self, identity: str) -> None:
        del self._pool[identity]

    def put(self, value: Any, force_id: str | None = None) -> Any:
        return self._pool.put(value, force_id)


class _View:
    def __init__(self, target: Any) -> None:
        self._target = target

    def __getattribute__(self, name: str) -> Any:
        target = object.__getattribute__(self, "_target")
        if name.startswith("_") or not inspect.isfunction(getattr(type(target), name, None)):
            raise AttributeError(f"{name} is no public method of a {type(target).__name__}")
        return getattr(target, name)
