"""The newest records of queries of a table, read by the driver: what a plan needs to know of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from catalog.insights.consumption import CONSUMPTION_FOLDER
from catalog.properties.insight_properties import CONSUMPTION_ENABLED
from catalog.table.managed_table import ManagedTable

# A plan takes so many records into account, the newest ones.
MOST_RECORDS = 50_000
_NUMBERED = re.compile(r"(\d+)-[^/]+\.json")


@dataclass(frozen=True)
class Filter:
    """A comparison of a column.

    Attributes:
        column: its name.
        operator: such as ``>=``; with ``f()`` or ``OR`` it does not decide about a row.
        literal: as SQL; None where literals are not recorded.
    """

    column: str
    operator: str
    literal: str | None


@dataclass(frozen=True)
class RecordedScan:
    """A scan of the table by a query that has finished.

    Attributes:
        time: when the query finished, epoch milliseconds.
        fraction: share of the weights that it asked for; 1 without a sample.
        filters: what it compared.
        rows_read: rows that the scan returned.
        rows_kept: rows that the filters above it kept.
    """

    time: int
    fraction: float
    filters: tuple[Filter, ...]
    rows_read: int
    rows_kept: int


def recorded_scans(table: ManagedTable, since: int, most: int = MOST_RECORDS) -> list[RecordedScan] | None:
    """Returns the newest scans, in the order of time; None where the table does not record them.

    Lines that cannot be read are left out: they only decide when a merge is worth its price.

    Args:
        table: the table.
        since: earlier scans are not needed; epoch milliseconds.
        most: how many are wanted.
    """
    snapshot = table.snapshot()
    if not CONSUMPTION_ENABLED.value(snapshot.configuration):
        return None
    numbered = [(int(m[1]), n) for n in table.list_state(CONSUMPTION_FOLDER) if (m := _NUMBERED.fullmatch(n))]
    scans: dict[tuple[str, int, int], RecordedScan] = {}
    for newest, name in sorted(numbered, reverse=True):
        if newest < since or len(scans) >= most:
            break
        text = table.read_state(f"{CONSUMPTION_FOLDER}/{name}") or ""
        scans |= dict(_scans_in(text, snapshot.table_id))
    ordered = sorted((scan for scan in scans.values() if scan.time >= since), key=lambda scan: scan.time)
    return ordered[-most:]


def _scans_in(text: str, table_id: str) -> Iterator[tuple[tuple[str, int, int], RecordedScan]]:
    for line in text.split("\n"):
        try:
            record = json.loads(line)
            if record["table_id"] != table_id:
                continue
            fraction = record.get("sample_fraction")
            filters = tuple(Filter(f["column"], f["operator"], f.get("literal")) for f in record.get("filters") or ())
            scan = RecordedScan(
                int(record["finished_at"]),
                1.0 if fraction is None else float(fraction),
                filters,
                int(record.get("rows_read") or 0),
                int(record.get("rows_kept") or 0),
            )
            yield (str(record["application_id"]), int(record["execution_id"]), int(record["scan"])), scan
        except (ValueError, KeyError, TypeError):
            continue
