"""``use-spark vacuum``."""

from __future__ import annotations

from collections.abc import Sequence

from sql_ext.commands.declarations import declared
from sql_ext.commands.exits import ExitCode
from sql_ext.commands.output import Row
from sql_ext.commands.rows_command import rows_command


def outcome_of(rows: Sequence[Row]) -> ExitCode:
    """Returns the exit code of a vacuum, which says whether it deleted anything, or would in a dry run.

    Args:
        rows: its result.
    """
    if all(row["state"] == "kept" for row in rows):
        return ExitCode.NOTHING_TO_DO
    return ExitCode.DONE


COMMAND = rows_command(
    declared("vacuum"),
    outcome=outcome_of,
    shown=(
        "use-spark vacuum --table db.flights --dry-run",
        "use-spark vacuum --table-location=/data/flights --mode lite",
        "use-spark vacuum --table db.flights --retention-hours 200 --json",
    ),
)
