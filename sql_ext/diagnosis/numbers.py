"""Numbers of a diagnosis for people."""

from __future__ import annotations

_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")


def size(count: float) -> str:
    """Returns bytes with a suitable unit, such as ``1.5 MB``."""
    value, unit = float(count), 0
    while value >= 1000 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.1f} {_UNITS[unit]}" if unit else f"{int(count)} bytes"


def percent(share: float | None) -> str:
    """Returns a share, such as ``2.4 %``; empty if it is unknown."""
    if share is None:
        return ""
    value = 100 * share
    return f"{value:.1f} %" if value < 10 else f"{value:.0f} %"
