"""Addresses that servers listen on: URLs, and errors of ports."""

from __future__ import annotations

import errno

from catalog.errors import InvalidArgumentError, UseError


def host_in_url(host: str) -> str:
    """Returns a host as URLs write it, with brackets around an address of IPv6.

    Args:
        host: name or address.
    """
    return f"[{host}]" if ":" in host else host


def port_refusal(names: tuple[str, str], port: int, host: str, error: OSError) -> UseError:
    """Returns the error for a port that cannot be opened.

    Args:
        names: names of the options with the port and the host.
        port: the port.
        host: name or address.
        error: what the operating system says.
    """
    if error.errno == errno.EADDRINUSE:
        return UseError(
            f"{names[0]} = {port} on {host} is in use: use another port, or 0 for a free one.",
            code="USE_PORT_IN_USE",
            sql_state="55006",
        )
    if isinstance(error, PermissionError):
        return InvalidArgumentError.of(names[0], port, "a port that you may use, such as 1024 or above")
    return InvalidArgumentError.of(names[1], host, "a name or an address of this machine")
