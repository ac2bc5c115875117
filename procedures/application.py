"""The state that all statements, runs and services of one process share, as one object that tests can make anew."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from catalog.clock import SYSTEM_CLOCK, Clock
from catalog.state.automation import Automations
from procedures.layout.current_trees import CurrentTrees
from procedures.optimizer.runs import Runs

if TYPE_CHECKING:
    from procedures.declaration import Procedure
    from procedures.selection.selection_strategy import Strategy

_MOST_TREES = 64


def _built_in_procedures() -> dict[str, Procedure]:
    # Imported here: procedures ask for the application.
    from procedures.registry import built_in_procedures

    return {procedure.name: procedure for procedure in built_in_procedures()}


def _built_in_strategies() -> dict[str, Strategy]:
    from procedures.selection import built_in_strategies

    return {strategy.name: strategy for strategy in built_in_strategies()}


@dataclass(eq=False)
class Application:
    """The shared state of a process.

    Attributes:
        clock: the time.
        runs: the optimizations that are under way.
        automations: the tables under automatic optimization.
        trees: the current trees of table versions.
        procedures: by name; the built-in ones and those that users register.
        strategies: likewise.
    """

    clock: Clock = SYSTEM_CLOCK
    runs: Runs = field(default_factory=Runs)
    automations: Automations = field(default_factory=Automations)
    trees: CurrentTrees = field(default_factory=lambda: CurrentTrees(_MOST_TREES))
    procedures: dict[str, Procedure] = field(default_factory=_built_in_procedures)
    strategies: dict[str, Strategy] = field(default_factory=_built_in_strategies)


# Reentrant: the first use imports modules.
_lock = threading.RLock()
_active: list[Application] = []


def application() -> Application:
    """The application of this process, made when it is first used."""
    with _lock:
        if not _active:
            _active.append(Application())
        return _active[-1]


@contextmanager
def active(made: Application) -> Iterator[Application]:
    """Makes an application that of the process while the block runs, for tests; threads of the process see it too.

    Args:
        made: the application.
    """
    application()
    with _lock:
        _active.append(made)
    try:
        yield made
    finally:
        with _lock:
            _active.remove(made)
