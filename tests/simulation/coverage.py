"""Which faults struck while which phase was under way."""

from __future__ import annotations

from collections import Counter

from simulation.faults import FAULTS

PHASES = (
    "snapshot",
    "statements",
    "lease",
    "claims",
    "plan",
    "fleet",
    "begin",
    "write record",
    "read rows",
    "write rows",
    "commit",
    "events",
    "discard",
    "cancel",
    "versions",
    "reclaim",
    "protect",
    "vacuum: list",
    "vacuum: look",
    "vacuum: delete",
    "checkpoint",
    "clean log",
    "append",
    "rewrite rows",
    "write vector",
)
"""What processes of the product and plain writers are in the middle of, or are about to do."""


def table(phases: Counter[tuple[str, str]]) -> str:
    """The numbers of faults, a line per phase.

    Args:
        phases: numbers by phase and fault.
    """
    width = max(map(len, PHASES))
    head = " " * width + "".join(f"{fault:>15}" for fault in FAULTS)
    lines = [f"{phase:<{width}}" + "".join(f"{phases[phase, fault]:>15,}" for fault in FAULTS) for phase in PHASES]
    return "\n".join([head, *lines])


def empty_fields(phases: Counter[tuple[str, str]]) -> list[tuple[str, str]]:
    """The pairs of phase and fault that no history had."""
    return [(phase, fault) for phase in PHASES for fault in FAULTS if not phases[phase, fault]]
