"""Mode ``events``: the files of events below ``_use/events``."""

from __future__ import annotations

from catalog.counted_nouns import counted
from catalog.epoch_millis import LAST_MILLIS
from catalog.history.event_expiry import delete_expired, expired_files
from catalog.history.event_store import (
    TimeRange,
    current_files,
    merge,
    removable_files,
    unmerged_files,
)
from catalog.history.events import EVENTS_FOLDER
from catalog.properties.retention_properties import RETENTION_HOURS
from procedures.lifecycle.log.log_mode import SKIPPED, TIMESTAMP_END, TIMESTAMP_START, LogMode, LogTask, ModeOutcome
from procedures.process.application import application

_MILLIS_PER_HOUR = 3_600_000
# A merge of fewer files leaves more for ten minutes, and saves readers nothing that they notice.
_FEWEST_FILES = 10


class Events(LogMode):
    """Merges files of events into one, and deletes those beyond ``use.retention.hours``."""

    name = "events"
    doc = "Merges the files of events, and deletes events beyond use.retention.hours."
    times = frozenset({TIMESTAMP_START, TIMESTAMP_END})

    def run(self, task: LogTask) -> ModeOutcome:
        """See ``LogMode.run``."""
        table, now = task.table, application().clock.now()
        times = TimeRange(
            0 if task.start is None else task.start.millis, LAST_MILLIS if task.end is None else task.end.millis
        )
        hours = RETENTION_HOURS.optional_value(table.snapshot().settings)
        # Without a retention, every event is kept.
        before = 0 if hours is None else min(now - round(hours * _MILLIS_PER_HOUR), times.end + 1)
        current = current_files(table, now)
        expired = expired_files(table, before, times.start)
        kept = {name for name in current if f"{EVENTS_FOLDER}/{name}" not in expired}
        parts = kept.intersection(unmerged_files(table, now, times))
        merges, removable = len(parts) >= _FEWEST_FILES, removable_files(table, now)
        if not expired and not merges and not removable:
            text = f"{counted(len(parts), 'file')} of events can be merged; a merge begins at {_FEWEST_FILES}"
            return ModeOutcome(SKIPPED, text, files=(len(current), len(current)))
        after = None
        if not task.dry_run:
            delete_expired(table, before, times.start)
            # Fewer files are not merged; the call deletes those that an earlier merge replaced.
            merge(table, now, 1 if merges else len(parts), times)
            after = len(current_files(table, now))
        texts = [f"{counted(len(expired), 'file')} of events beyond use.retention.hours deleted"] if expired else []
        if removable:
            texts.append(f"{counted(removable, 'file')} deleted that an earlier call had merged")
        if merges:
            texts.append(f"{len(parts)} files of events merged; a call after 10 minutes deletes them")
        outcome = task.outcome("; ".join(texts))
        return ModeOutcome(outcome.state, outcome.message, files=(len(current), after))
