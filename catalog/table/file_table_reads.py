"""Reads the columns of several tables in one Spark job."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import reduce

import pyarrow.compute as pc
from pyspark.sql import functions as F

from catalog.files.file_table import FileTable
from catalog.jvm.session import metadata_session
from catalog.table.snapshot import TableSnapshot

logger = logging.getLogger(__name__)

_NUMBER = "snapshot"
# Longer lists are read one by one.
MAX_FILES = 50_000


def read_together(snapshots: Sequence[TableSnapshot]) -> None:
    """Reads the files of snapshots in one Spark job, so that their ``file_table`` needs none.

    Snapshots that are kept already, or that do not fit into memory together, are left out. Never fails: what cannot be
    read here fails where it is needed.

    Args:
        snapshots: of different tables, in one session.
    """
    try:
        _read_together(snapshots)
    except Exception as error:  # noqa: BLE001 - one damaged table must not hide the others
        logger.info("Files of %d tables could not be read together: %s", len(snapshots), error)


def _read_together(snapshots: Sequence[TableSnapshot]) -> None:
    missing = []
    files = 0
    for snapshot in snapshots:
        if snapshot.version < 0 or snapshot.version_files.kept is not None or snapshot.extent.files is None:
            continue
        files += snapshot.extent.files
        if files > MAX_FILES:
            break
        missing.append(snapshot)
    if len(missing) < 2:
        return
    session = metadata_session(missing[0].spark, sum(s.extent.log_bytes for s in missing))
    frames = [s.version_files.rows_in(session).withColumn(_NUMBER, F.lit(i)) for i, s in enumerate(missing)]
    rows = reduce(lambda one, other: one.unionAll(other), frames).coalesce(1).toArrow()
    for number, snapshot in enumerate(missing):
        snapshot.version_files.keep(FileTable.of(rows.filter(pc.equal(rows[_NUMBER], number))))
