"""Folders that a session writes to."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from catalog.errors import UseError
from sql_ext.commands.doctor_checks.finding import FAIL, OK, WARN, Finding
from sql_ext.warehouse import open_warehouse

_LOW_BYTES = 2_000_000_000


def folders(environment: Mapping[str, str], settings: Mapping[str, str], warehouse: Path | None) -> list[Finding]:
    """Whether Spark can write where it will.

    Args:
        environment: variables.
        settings: of Spark, as given for the session.
        warehouse: the folder of ``--warehouse``.
    """
    local = environment.get("SPARK_LOCAL_DIRS") or settings.get("spark.local.dir") or tempfile.gettempdir()
    found = [writable("scratch", Path(place)) for place in local.split(",")]
    if warehouse is not None:
        return [*found, claimed(warehouse)]
    given = settings.get("spark.sql.warehouse.dir", "spark-warehouse")
    if "://" in given:
        return [*found, Finding("warehouse", OK, f"{given}: looked at when a session starts")]
    return [*found, writable("warehouse", Path(given.removeprefix("file:")))]


def claimed(warehouse: Path) -> Finding:
    """Whether the warehouse's folder can be written to, and no other process has its metastore open.

    Args:
        warehouse: the folder; made where it is missing.
    """
    try:
        open_warehouse(warehouse)
    except UseError as error:
        return Finding("warehouse", FAIL, f"{error.code}: {error.message}", "give another folder with --warehouse")
    return writable("warehouse", warehouse)


def writable(check: str, folder: Path) -> Finding:
    """Whether a folder, or the one that it would be made in, can be written to and has room.

    Args:
        check: its name for people.
        folder: may be missing.
    """
    place = folder.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    try:
        with tempfile.TemporaryFile(dir=place):
            room = shutil.disk_usage(place).free
    except OSError as error:
        return Finding(check, FAIL, f"{folder} cannot be written: {error.strerror}", "change its rights, or its place")
    text = f"{folder} can be written, {room / 1e9:.0f} GB are free"
    return Finding(check, WARN, text, "make room") if room < _LOW_BYTES else Finding(check, OK, text)
