"""The loopback and the ports that a driver needs."""

from __future__ import annotations

import socket
from collections.abc import Mapping

from sql_ext.commands.doctor_checks.finding import FAIL, OK, WARN, Finding

LOOPBACK = "127.0.0.1"
# Spark's UI tries this many from its first one on; nothing else has a fixed port in a driver.
UI_PORT, UI_TRIES = 4040, 16


def loopback() -> Finding:
    """Whether Python and the JVM can talk: they do over the loopback."""
    try:
        with socket.create_server((LOOPBACK, 0)) as server:
            server.settimeout(5)
            with socket.create_connection(server.getsockname(), timeout=5):
                server.accept()[0].close()
    except OSError as error:
        return Finding("loopback", FAIL, f"{LOOPBACK} cannot be used: {error}", "let processes of this machine talk")
    return Finding("loopback", OK, f"{LOOPBACK} answers")


def host_name(environment: Mapping[str, str], name: str | None = None) -> Finding:
    """Whether the name of this machine has an address: Spark looks it up when it starts.

    Args:
        environment: variables.
        name: of the machine; its own when left out.
    """
    given = environment.get("SPARK_LOCAL_IP")
    if given:
        return Finding("host name", OK, f"SPARK_LOCAL_IP={given}")
    name = socket.gethostname() if name is None else name
    try:
        return Finding("host name", OK, f"{name} is {socket.gethostbyname(name)}")
    except OSError as error:
        advice = f"set SPARK_LOCAL_IP={LOOPBACK}, or add the name to /etc/hosts"
        return Finding("host name", FAIL, f"{name} has no address: {error}", advice)


def ports(first: int = UI_PORT, tries: int = UI_TRIES) -> Finding:
    """Whether a port is left for Spark's UI.

    Args:
        first: that it tries.
        tries: how many it tries.
    """
    port = next((port for port in range(first, first + tries) if _free(port)), None)
    if port is not None:
        return Finding("ports", OK, f"{port} is free for Spark's UI")
    advice = "end other Spark applications, or use --conf spark.ui.enabled=false"
    return Finding("ports", WARN, f"{first} to {first + tries - 1} are taken: Spark's UI needs one", advice)


def _free(port: int) -> bool:
    try:
        with socket.create_server((LOOPBACK, port)):
            return True
    except OSError:
        return False
