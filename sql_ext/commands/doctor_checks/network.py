"""Checks of the loopback interface and the ports of a driver."""

from __future__ import annotations

import socket
from collections.abc import Mapping

from sql_ext.commands.doctor_checks.finding import FAIL, OK, WARN, Finding

LOOPBACK = "127.0.0.1"
# Spark's UI tries this many ports. No other service of a driver has a fixed port.
UI_PORT, UI_TRIES = 4040, 16


def loopback() -> Finding:
    """Checks the loopback interface, over which Python and the JVM communicate."""
    try:
        with socket.create_server((LOOPBACK, 0)) as server:
            server.settimeout(5)
            with socket.create_connection(server.getsockname(), timeout=5):
                server.accept()[0].close()
    except OSError as error:
        return Finding(
            "loopback",
            FAIL,
            f"{LOOPBACK} cannot be used: {error}",
            "allow connections between processes of this machine",
        )
    return Finding("loopback", OK, f"{LOOPBACK} works")


def host_name(environment: Mapping[str, str], name: str | None = None) -> Finding:
    """Checks that the name of this machine has an address, which Spark looks up when it starts.

    Args:
        environment: variables.
        name: host name; that of this machine by default.
    """
    local_ip = environment.get("SPARK_LOCAL_IP")
    if local_ip:
        return Finding("host name", OK, f"SPARK_LOCAL_IP={local_ip}")
    name = socket.gethostname() if name is None else name
    try:
        return Finding("host name", OK, f"{name} is {socket.gethostbyname(name)}")
    except OSError as error:
        advice = f"set SPARK_LOCAL_IP={LOOPBACK}, or add the name to /etc/hosts"
        return Finding("host name", FAIL, f"{name} has no address: {error}", advice)


def ports(first: int = UI_PORT, tries: int = UI_TRIES) -> Finding:
    """Checks that a port is free for Spark's UI.

    Args:
        first: first port that the UI tries.
        tries: number of ports that it tries.
    """
    port = next((port for port in range(first, first + tries) if _free(port)), None)
    if port is not None:
        return Finding("ports", OK, f"{port} is free for Spark's UI")
    advice = "stop other Spark applications, or use --conf spark.ui.enabled=false"
    return Finding("ports", WARN, f"{first} to {first + tries - 1} are in use: Spark's UI needs one of them", advice)


def _free(port: int) -> bool:
    try:
        with socket.create_server((LOOPBACK, port)):
            return True
    except OSError:
        return False
