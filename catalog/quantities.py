"""Quantities as people read them, the same in messages, on the command line and in reports."""

from __future__ import annotations

_BYTE_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")
_SECOND, _MINUTE, _HOUR = 1000, 60_000, 3_600_000


def size_text(size: float) -> str:
    """Formats bytes with a suitable unit: ``1.5 MB``.

    Args:
        size: number of bytes.
    """
    value, unit = float(size), 0
    # What is rounded to 1000 gets the next unit.
    while value >= 999.95 and unit < len(_BYTE_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.1f} {_BYTE_UNITS[unit]}" if unit else f"{value:.0f} {_BYTE_UNITS[0] if value != 1 else 'byte'}"


def share_text(share: float, digits: int = 1) -> str:
    """Formats a share as a percentage: ``12.5 %``.

    Args:
        share: 1 is the whole.
        digits: after the point.
    """
    return f"{100 * share:.{digits}f} %"


def duration_text(milliseconds: int) -> str:
    """Formats a duration with a suitable unit: ``1.5 s``, ``2 min 5 s``.

    Args:
        milliseconds: the duration.
    """
    if milliseconds < _SECOND:
        return f"{milliseconds} ms"
    if milliseconds < _MINUTE:
        return f"{milliseconds / _SECOND:.1f} s"
    if milliseconds < _HOUR:
        return f"{milliseconds // _MINUTE} min {milliseconds % _MINUTE // _SECOND} s"
    return f"{milliseconds // _HOUR} h {milliseconds % _HOUR // _MINUTE} min"
