"""Mode ``events``: the files of events below ``_use/events``."""

from __future__ import annotations

from catalog.counted_nouns import counted
from catalog.history.event_expiry import delete_expired, expired_files
from catalog.history.event_store import EVENTS_FOLDER, TimeRange, merge, unmerged_files
from catalog.history.moments import LAST_MILLIS
from catalog.properties.retention_properties import RETENTION_HOURS
from procedures.application import application
from procedures.log_consolidation.log_mode import SKIPPED, TIMESTAMP_END, TIMESTAMP_START, LogMode, LogTask, ModeOutcome

_MILLIS_PER_HOUR = 3_600_000


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
        hours = RETENTION_HOURS.optional_value(table.snapshot().configuration)
        # Without a retention, every event is kept.
        before = 0 if hours is None else min(now - round(hours * _MILLIS_PER_HOUR), times.end + 1)
        names = table.list_state(EVENTS_FOLDER)
        expired = expired_files(table, before, times.start)
        kept = {name for name in names if f"{EVENTS_FOLDER}/{name}" not in expired}
        parts = kept.intersection(unmerged_files(table, now, times))
        if not expired and len(parts) < 2:
            return ModeOutcome(SKIPPED, "no file of events can be merged or deleted", files=(len(names), len(names)))
        after = None
        if not task.dry_run:
            delete_expired(table, before, times.start)
            merge(table, now, 1, times)
            after = len(table.list_state(EVENTS_FOLDER))
        texts = [f"{counted(len(expired), 'file')} of events beyond use.retention.hours deleted"] if expired else []
        if len(parts) > 1:
            texts.append(
                f"{len(parts)} files of events merged, which stay for 10 minutes, until a later call deletes them"
            )
        outcome = task.outcome("; ".join(texts))
        return ModeOutcome(outcome.state, outcome.message, files=(len(names), after))
