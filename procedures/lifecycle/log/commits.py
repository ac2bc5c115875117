"""Mode ``commits``: a checkpoint replaces the commits that a reader has to read."""

from __future__ import annotations

from catalog.counted_nouns import counted
from catalog.errors import InvalidArgumentError
from catalog.jvm.table_state import LogExtent
from catalog.jvm.table_versions import TableVersions
from catalog.quantities import size_text
from procedures.lifecycle.log.log_mode import SKIPPED, TIMESTAMP_END, LogMode, LogTask, ModeOutcome

# From here on, the files that readers no longer open count for more than a few bytes.
_MANY_COMMITS = 50
# The size of a checkpoint without its actions, mostly its footer, and the factor by which actions shrink in it:
# measured on tables of 1 to 25 columns, plain and indexed, with 3 to 40 commits.
_FIXED_BYTES, _BYTES_PER_COLUMN, _SHARE_OF_COMMITS = 18_000, 1_250, 0.4


def is_smaller(commits: int, extent: LogExtent, columns: int) -> bool:
    """Whether a load of the newest version is expected to read fewer bytes once it has a checkpoint; pure.

    Args:
        commits: how many follow the last checkpoint.
        extent: bytes of the log that a load reads.
        columns: columns of the table.
    """
    before = extent.log_bytes - extent.commit_bytes
    actions = _SHARE_OF_COMMITS * extent.commit_bytes
    fixed = before or _FIXED_BYTES + _BYTES_PER_COLUMN * columns
    return commits >= _MANY_COMMITS or fixed + actions <= extent.log_bytes


class Commits(LogMode):
    """Writes a checkpoint of the newest version if a load then reads less, or of the newest one at a time.

    No commit is deleted.
    """

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
        commits, snapshot = version - checkpoint, task.table.snapshot()
        # A caller that names a time wants this version to load quickly, whatever the load of the newest one costs.
        if task.end is None and not is_smaller(commits, snapshot.extent, len(snapshot.schema)):
            text = f"a checkpoint would be larger than the {counted(commits, 'commit')} that readers load"
            return ModeOutcome(SKIPPED, f"{text}, {size_text(snapshot.extent.commit_bytes)}")
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
