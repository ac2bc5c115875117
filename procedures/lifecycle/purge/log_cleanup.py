"""Deletes log entries before the oldest version that must stay readable; Delta's own clean-up counts days only."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.jvm.table_versions import LogFiles, TableVersions

# A checkpoint of a large table costs more than a few commits take.
COMMITS_WORTH_A_CHECKPOINT = 10


@dataclass(frozen=True)
class LogBoundary:
    """Where the log is to begin.

    Attributes:
        version: the first version that it keeps.
        needs_checkpoint: whether a checkpoint of this version must be written first.
    """

    version: int
    needs_checkpoint: bool


def boundary_of(keep: int, checkpoint: int, oldest: int, worth: int = COMMITS_WORTH_A_CHECKPOINT) -> LogBoundary | None:
    """Decides where the log is to begin; pure.

    Args:
        keep: the oldest version that must stay readable.
        checkpoint: the newest checkpoint that is not newer; -1 without one.
        oldest: the oldest version that the log can make.
        worth: how many commits must be gained for a checkpoint to be written.

    Returns:
        None if so little can be deleted that it stays.
    """
    if keep - max(checkpoint, oldest) >= worth:
        return LogBoundary(keep, True)
    return None if checkpoint < 0 else LogBoundary(checkpoint, False)


class LogCleanup:
    """The clean-up of a table's log.

    Args:
        versions: the versions of the table.
        keep: the oldest version that must stay readable.
        whole: whether every entry that no version needs is deleted, even if a checkpoint costs more than it saves.
    """

    def __init__(self, versions: TableVersions, keep: int, *, whole: bool = False) -> None:
        self._versions = versions
        self.guard = versions.log_guard()
        """Why the log is left to Delta; empty if it is not."""
        worth = 1 if whole else COMMITS_WORTH_A_CHECKPOINT
        boundary = None if self.guard else boundary_of(keep, versions.checkpoint_before(keep), versions.oldest(), worth)
        files = LogFiles(0, 0) if boundary is None else versions.log_before(boundary.version)
        self.boundary = boundary if files.files else None
        self.planned = files

    def run(self) -> LogFiles:
        """Deletes the entries."""
        if self.boundary is None:
            return LogFiles(0, 0)
        if self.boundary.needs_checkpoint:
            self._versions.checkpoint(self.boundary.version)
        return self._versions.delete_log_before(self.boundary.version)
