"""Checks of the folders that a session writes to."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from catalog.errors import UseError
from catalog.locations import local_path
from catalog.quantities import size_text
from sql_ext.commands.doctor_checks.finding import FAIL, OK, WARN, Finding
from sql_ext.warehouse import open_warehouse

_LOW_BYTES = 2_000_000_000


def check_folders(environment: Mapping[str, str], settings: Mapping[str, str], warehouse: Path | None) -> list[Finding]:
    """Checks that Spark can write to its folders.

    Args:
        environment: variables.
        settings: settings of Spark for the session.
        warehouse: the folder of ``--warehouse``.
    """
    local = environment.get("SPARK_LOCAL_DIRS") or settings.get("spark.local.dir") or tempfile.gettempdir()
    scratch = [writable("scratch", Path(place)) for place in local.split(",")]
    if warehouse is not None:
        return [*scratch, claimed(warehouse)]
    configured = settings.get("spark.sql.warehouse.dir", "spark-warehouse")
    if local_path(configured) is None and "://" in configured:
        return [*scratch, Finding("warehouse", OK, f"{configured}: checked when a session starts")]
    return [*scratch, writable("warehouse", Path(local_path(configured) or configured))]


def claimed(warehouse: Path) -> Finding:
    """Checks that the folder of the warehouse is writable and that no other process has its metastore open.

    Args:
        warehouse: the folder, which is created if it is missing.
    """
    try:
        open_warehouse(warehouse)
    except UseError as error:
        return Finding("warehouse", FAIL, f"{error.code}: {error.message}", "give another folder with --warehouse")
    return writable("warehouse", warehouse)


def writable(check: str, folder: Path) -> Finding:
    """Checks that a folder, or the parent in which it would be created, is writable and has free space.

    Args:
        check: name of the check.
        folder: the folder; may be missing.
    """
    place = folder.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    try:
        with tempfile.TemporaryFile(dir=place):
            free_bytes = shutil.disk_usage(place).free
    except OSError as error:
        return Finding(
            check, FAIL, f"{folder} cannot be written: {error.strerror}", "change its permissions or its location"
        )
    text = f"{folder} is writable, {size_text(free_bytes)} are free"
    return Finding(check, WARN, text, "free some disk space") if free_bytes < _LOW_BYTES else Finding(check, OK, text)
