"""Mode ``commits``: a checkpoint replaces the commits that a reader has to read."""

from __future__ import annotations

from catalog.counted_nouns import counted
from catalog.errors import InvalidArgumentError
from catalog.jvm.table_versions import TableVersions
from procedures.log_consolidation.log_mode import SKIPPED, TIMESTAMP_END, LogMode, LogTask, ModeOutcome


class Commits(LogMode):
    """Writes a checkpoint of the newest version, or of the newest one at a time. No commit is deleted."""

    name = "commits"
    doc = "Writes a checkpoint, which readers load in place of the commits before it. No commit is deleted."
    times = frozenset({TIMESTAMP_END})

    def run(self, task: LogTask) -> ModeOutcome:
        """See ``LogMode.run``."""
        versions = task.table.handle.versions(task.session)
        version = _version(task, versions)
        checkpoint = versions.checkpoint_before(version)
        if checkpoint == version:
            return ModeOutcome(SKIPPED, f"version {version} has a checkpoint")
        commits = version - checkpoint
        if not task.dry_run:
            versions.checkpoint(version)
        return task.outcome(
            f"a checkpoint of version {version} replaces {counted(commits, 'commit')} for readers", version
        )


def _version(task: LogTask, versions: TableVersions) -> int:
    if task.end is None:
        return versions.newest()
    version = versions.at(task.end.millis)
    if version < 0 or versions.time_of(version) > task.end.millis:
        accepted = f"a time after the oldest version that the log can make, which is {versions.oldest()}"
        raise InvalidArgumentError.of(TIMESTAMP_END, task.end.text, accepted)
    return version
