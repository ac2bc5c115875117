"""Actions of the service for tables: one file per kind of action, and a line in ``ACTIONS``."""

from procedures.service.action import Action, KnownTable, TableChange
from procedures.service.start_optimization import StartOptimization
from procedures.service.stop_optimization import StopOptimization

# The order matters: the worker of a replaced table stops before the worker of its successor starts.
ACTIONS: tuple[type[Action], ...] = (StopOptimization, StartOptimization)

__all__ = ["ACTIONS", "Action", "KnownTable", "StartOptimization", "StopOptimization", "TableChange"]
