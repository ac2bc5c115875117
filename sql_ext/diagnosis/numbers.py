"""Numbers of a diagnosis for people."""

from __future__ import annotations


def percent(share: float | None) -> str:
    """Returns a share, such as ``2.4 %``; empty if it is unknown."""
    if share is None:
        return ""
    value = 100 * share
    return f"{value:.1f} %" if value < 10 else f"{value:.0f} %"
