"""The queries that a recommendation can be measured with."""

from __future__ import annotations

from catalog.errors import InvalidArgumentError

ACCEPTED = "one SELECT over the table, such as SELECT * FROM t WHERE x > 1"


def no_queries(table: str) -> InvalidArgumentError:
    """Builds the error for a table whose reads were not recorded, if the caller gives no queries either.

    Args:
        table: its name.
    """
    return InvalidArgumentError.missing(
        "queries", f"there is no recorded consumption of {table}; give queries, each {ACCEPTED}"
    )
