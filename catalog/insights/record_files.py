"""The files below ``_use/consumption``, which are listed without Spark."""

from __future__ import annotations

import re

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
