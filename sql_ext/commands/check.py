"""``use-spark check``."""

from __future__ import annotations

from collections.abc import Sequence

from sql_ext.commands.declarations import declared
from sql_ext.commands.exits import ExitCode
from sql_ext.commands.output import Row
from sql_ext.commands.rows_command import rows_command


def outcome_of(rows: Sequence[Row]) -> ExitCode:
    """Returns the exit code of a check.

    Args:
        rows: the problems; the last row is the summary.
    """
    from procedures.insight.checking.problem import ERROR

    return ExitCode.FAILED if any(row["severity"] == ERROR for row in rows) else ExitCode.DONE


COMMAND = rows_command(
    declared("check"),
    outcome=outcome_of,
    shown=("use-spark check --table db.flights", "use-spark check --table db.flights --deep --json"),
)
