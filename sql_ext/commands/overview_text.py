"""The overview of a table as lines for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catalog.control_characters import without_control_characters
from catalog.counted_nouns import counted
from catalog.quantities import size_text
from sql_ext.commands.hanging_lines import hanging
from sql_ext.commands.output import Row

# Where facts begin.
_MARGIN = 19


def overview_text(row: Row, width: int | None = None) -> str:
    """Formats an overview with one line per fact, or several on a narrow terminal.

    Args:
        row: the result of ``overview``.
        width: of the terminal, in characters; None for one line per fact.
    """
    last, automatic = row["last_optimization"], row["automatic"]
    unknown = "" if row["rows_known"] else " or more (some files have no statistics)"
    facts = {
        "table": row["name"],
        "location": row["location"],
        "version": row["version"],
        "index columns": ", ".join(row["index_columns"]) if row["index_columns"] else "none",
        "revisions": f"{row['revisions']}, the newest is {row['newest_revision']}" if row["revisions"] else "none",
        "files": f"{row['files']:,}: {row['indexed_files']:,} indexed, {row['unindexed_files']:,} not",
        "rows": f"{row['rows']:,}{unknown}: {row['indexed_rows']:,} indexed, {row['unindexed_rows']:,} not",
        "small files": f"{row['small_files']:,}",
        "deleted rows": f"{row['deleted_rows']:,} in {counted(row['files_with_deleted_rows'], 'file')}",
        "size": f"{size_text(row['bytes'])}: {size_text(row['unindexed_bytes'])} not indexed",
        "properties": ", ".join(f"{key}={text}" for key, text in row["properties"].items()) or "none",
        "last optimization": "none recorded" if last is None else _last_text(last),
        "automatic": automatic["state"] + (f" ({automatic['type']})" if automatic["type"] else ""),
    }
    # Names and properties are those of a log that others may have written.
    lines = [f"{name:<{_MARGIN}}{without_control_characters(str(fact))}" for name, fact in facts.items()]
    return "\n".join(lines if width is None else [hanging(line, _MARGIN, width) for line in lines])


def _last_text(last: Mapping[str, Any]) -> str:
    parts = [last["optimization_name"], last["state"], f"by {last['trigger']}", f"at {last['finished_at']}"]
    error = f"; {last['error_code']}: {last['error']}" if last["error_code"] else ""
    return " ".join(part for part in parts if part) + error
