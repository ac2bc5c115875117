"""The files below ``_use/consumption``, which are listed without Spark."""

from __future__ import annotations

import re
from collections.abc import Sequence

from catalog.state.state_files import StateFolder

CONSUMPTION_FOLDER = "consumption"
# The time of the newest query in the file, and the number of lines.
RECORD_FILE = re.compile(r"(\d+)-(?:merged-|full-)?(?:(\d+)-)?[^/]+\.json")


def has_records(table: StateFolder) -> bool:
    """Returns whether reads of a table were recorded.

    Args:
        table: the table.
    """
    return any(RECORD_FILE.fullmatch(name) for name in table.list_state(CONSUMPTION_FOLDER))


def newest_files(names: Sequence[str], since: int = 0, most: int | None = None) -> tuple[list[str], int | None]:
    """Returns the files of records that can hold the newest ones since a time.

    Args:
        names: of the files of the folder, in any order; others are skipped.
        since: epoch milliseconds; files without a later record are left out.
        most: files are left out once newer ones have so many lines, as their names say; None = none are.

    Returns:
        Their names, and when the newest record finished that files beyond ``most`` may hold; None without such files.
    """
    found = sorted(((int(m[1]), int(m[2] or 0), n) for n in names if (m := RECORD_FILE.fullmatch(n))), reverse=True)
    chosen: list[str] = []
    lines = 0
    for finished_at, count, name in found:
        if finished_at < since:
            break
        if most is not None and lines >= most:
            return chosen, finished_at
        chosen.append(name)
        lines += count
    return chosen, None
