"""What the service does for tables, one kind of action per file; another kind is a file and its line in ``ACTIONS``."""

from procedures.service.actions.action import Action, SeenTable, TableChange
from procedures.service.actions.start_optimization import StartOptimization
from procedures.service.actions.stop_optimization import StopOptimization

# In this order: what another table leaves behind ends before its successor begins.
ACTIONS: tuple[type[Action], ...] = (StopOptimization, StartOptimization)

__all__ = ["ACTIONS", "Action", "SeenTable", "StartOptimization", "StopOptimization", "TableChange"]
