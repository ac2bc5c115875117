"""When a system may go on: several of them share one machine, which a round that is timed needs for itself."""

from __future__ import annotations

import sys

READY, TIMED = "READY", "TIMED"
"""What a system asks for: to run a round that is timed, and to go on after the last one."""


def await_turn(state: str) -> None:
    """Waits until this system may go on.

    Args:
        state: ``READY`` or ``TIMED``.
    """
    print(state, flush=True)
    sys.stdin.readline()
