"""Which tables of the metastore hold a lease, whichever process has it."""

from __future__ import annotations

import logging
import time
from collections import deque
from contextlib import suppress
from threading import Thread

from pyspark.sql import SparkSession

from catalog.jvm.metastore import KnownTable, tables_of
from catalog.jvm.shared_texts import SharedTexts
from catalog.locations import STATE_FOLDER
from catalog.state.lease import LEASE_FILE, parse_lease
from catalog.state.state_files import Unreadable

logger = logging.getLogger(__name__)

_THREADS = 16
_MOST_SECONDS = 20.0


def leased_tables(spark: SparkSession, now: int, seconds: float = _MOST_SECONDS) -> list[KnownTable]:
    """Returns the tables of the metastore with an unexpired lease; reads one small file of each, and no log.

    Args:
        spark: session whose metastore counts.
        now: epoch milliseconds.
        seconds: tables whose file system has not answered by then are left out, with a warning.
    """
    tables = tables_of(spark)
    left, answered = deque(tables), list[tuple[KnownTable, bool]]()

    def work() -> None:
        while left:
            with suppress(IndexError):  # another thread may have taken the last one
                table = left.popleft()
                answered.append((table, _is_leased(spark, table, now)))

    ends = time.monotonic() + seconds
    # A file system that does not answer must not keep the process from ending.
    threads = [Thread(target=work, name="use-leases", daemon=True) for _ in range(min(_THREADS, len(tables)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(ends - time.monotonic(), 0))
    known = list(answered)
    left.clear()
    if len(known) < len(tables):
        logger.warning(
            "The leases of %d of %d tables could not be read in time.", len(tables) - len(known), len(tables)
        )
    return [table for table, is_leased in known if is_leased]


def _is_leased(spark: SparkSession, table: KnownTable, now: int) -> bool:
    try:
        text = SharedTexts(spark, f"{table.location}/{STATE_FOLDER}").read(LEASE_FILE)
    except Exception as error:  # noqa: BLE001 - an error of one table must not hide the others
        logger.info("The lease of %s cannot be read: %s", table.full_name, error)
        return False
    lease = Unreadable("", "") if text is None else parse_lease(text, now)
    return not isinstance(lease, Unreadable) and lease.expires_at > now
