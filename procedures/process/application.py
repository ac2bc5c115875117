"""The state that all statements, runs and services of one process share, as one object that tests can make anew."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from catalog.clock import SYSTEM_CLOCK, Clock
from catalog.state.automation import Automations
from procedures.declare.runs import Runs
from procedures.process.current_trees import CurrentTrees
from procedures.process.notifications import Notifications
from procedures.process.running_services import RunningServices

if TYPE_CHECKING:
    from procedures.declare.declaration import Procedure
    from procedures.groups.strategy import Strategy

_MOST_TREES = 64


@dataclass(eq=False)
class Application:
    """The shared state of a process.

    Attributes:
        clock: the time.
        runs: the optimizations that are under way.
        automations: the tables under automatic optimization.
        trees: the current trees of table versions.
        services: the services that run in the process.
        notifications: the functions that users register for what happens to tables.
        own_procedures: the procedures that users register, by name.
        own_strategies: the strategies that users register, by name.
    """

    clock: Clock = SYSTEM_CLOCK
    runs: Runs = field(default_factory=Runs)
    automations: Automations = field(default_factory=Automations)
    trees: CurrentTrees = field(default_factory=lambda: CurrentTrees(_MOST_TREES))
    services: RunningServices = field(default_factory=RunningServices)
    notifications: Notifications = field(default_factory=Notifications)
    own_procedures: dict[str, Procedure] = field(default_factory=dict)
    own_strategies: dict[str, Strategy] = field(default_factory=dict)


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
