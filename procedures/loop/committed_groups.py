"""The groups of a stored plan that the log of the table has as commits, with their versions."""

from __future__ import annotations

from pyspark.sql import functions as F

from catalog.history.event_rows import committed_events
from catalog.state.plan_files import StoredPlan
from catalog.table.managed_table import ManagedTable


class CommittedGroups:
    """The commits of a plan's groups. Reads each part of the history once.

    Args:
        table: the table.
        plan: the plan.
    """

    def __init__(self, table: ManagedTable, plan: StoredPlan) -> None:
        self._table = table
        self._plan_id = plan.plan_id
        self._read_to = plan.version
        self._versions: dict[str, int] = {}

    def version_of(self, group_id: int, newest: int) -> int | None:
        """Returns the version in which a group was committed; None if the log does not have it.

        Args:
            group_id: the group.
            newest: version up to which the history counts.
        """
        if newest > self._read_to:
            self._read(newest - self._read_to)
        return self._versions.get(str(group_id))

    def _read(self, commits: int) -> None:
        # Commits that arrive now shift the window of the newest commits, so that it may begin too late.
        history = self._table.history(commits)
        versions = [row.version for row in history.select("version").collect()]
        if min(versions) > self._read_to + 1 and len(versions) == commits:
            self._read(max(versions) - self._read_to)
            return
        parameters = F.col("parameters")
        rows = (
            committed_events(history)
            .where(parameters["plan"] == self._plan_id)
            .select("version", parameters["group"].alias("group"))
            .collect()
        )
        # The history begins with the newest commit, which counts.
        self._versions |= {row.group: row.version for row in reversed(rows) if row.group is not None}
        self._read_to = max(versions)
