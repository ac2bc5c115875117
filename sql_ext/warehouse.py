"""A warehouse folder that is complete in itself: tables, and beside them the metastore that knows their names."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from catalog.clock import SYSTEM_CLOCK
from catalog.errors import InvalidArgumentError, UseError, WriteDeniedError

JAVA_OPTIONS_KEY = "spark.driver.extraJavaOptions"
DERBY_LOG = "derby.stream.error.file"
# No table can be called so without quotes, and readers of files pass over such names.
_METASTORE = "_metastore"
_METASTORE_LOG = "_metastore.log"
# They would end the name inside a JDBC URL or an option of the JVM.
_REFUSED = (";", '"', "\n")

# A process that is ending releases its claim within this time; one that is at work does not.
_SECONDS_FOR_PREDECESSOR = 5.0
_SECONDS_BETWEEN_ATTEMPTS = 0.1

# Held to the end of the process, as Derby holds its database.
_held: dict[Path, IO[bytes]] = {}


def warehouse_conf(folder: Path) -> dict[str, str]:
    """The settings of Spark for tables below a folder, with names that survive the process.

    Nothing is touched. ``spark.driver.extraJavaOptions`` is to be joined with the options that a caller has: see
    ``with_warehouse``.

    Args:
        folder: of the warehouse; ``open_warehouse`` makes it.

    Raises:
        InvalidArgumentError: the path holds a character that the settings cannot hold.
    """
    place = folder.absolute()
    if any(character in str(place) for character in _REFUSED):
        raise InvalidArgumentError.of("warehouse", str(folder), "a path without semicolons, quotes and line breaks")
    return {
        "spark.sql.warehouse.dir": str(place),
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={place / _METASTORE};create=true",
        JAVA_OPTIONS_KEY: f'"-D{DERBY_LOG}={metastore_log(folder)}"',
    }


def with_warehouse(conf: dict[str, str], folder: Path) -> dict[str, str]:
    """The settings with those of the warehouse; the JVM's options are joined, everything else of ours wins.

    Args:
        conf: settings of Spark.
        folder: of the warehouse.

    Raises:
        InvalidArgumentError: see ``warehouse_conf``.
    """
    ours = warehouse_conf(folder)
    options = " ".join(part for part in (conf.get(JAVA_OPTIONS_KEY, ""), ours[JAVA_OPTIONS_KEY]) if part)
    return {**conf, **ours, JAVA_OPTIONS_KEY: options}


def metastore_log(folder: Path) -> Path:
    """Where the embedded database writes its log, in place of the working directory."""
    return folder.absolute() / _METASTORE_LOG


def open_warehouse(
    folder: Path,
    seconds: float = _SECONDS_FOR_PREDECESSOR,
    clock: Callable[[], float] = SYSTEM_CLOCK.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Makes the folder where it is missing, and claims its metastore for this process, to its end.

    Two processes that start at the same time would both find the database closed: each claims it by a lock of its own
    first. A process that was killed leaves its JVM behind for a moment, which closes the database as it ends.

    Args:
        folder: of the warehouse.
        seconds: to wait for another process that has the metastore open.
        clock: the time, in seconds.
        pause: waits for so many seconds.

    Raises:
        InvalidArgumentError: it is no folder.
        WriteDeniedError: it cannot be made or written to.
        UseError: another process has its metastore open, and did not end within ``seconds``.
    """
    place = folder.absolute()
    if place.exists() and not place.is_dir():
        raise InvalidArgumentError.of("warehouse", str(folder), "a folder, or a path where one can be made")
    if place.resolve() in _held:
        return
    try:
        place.mkdir(parents=True, exist_ok=True)
        claim = metastore_log(folder).open("ab")
    except OSError as error:
        raise WriteDeniedError(f"No file can be written below {place}: {error.strerror}.") from error
    deadline = clock() + seconds
    with ExitStack() as stack:
        stack.callback(claim.close)
        while not _claimed(claim) or _booted_elsewhere(place):
            if clock() >= deadline:
                raise _in_use(folder)
            pause(_SECONDS_BETWEEN_ATTEMPTS)
        stack.pop_all()
    _held[place.resolve()] = claim


def _claimed(claim: IO[bytes]) -> bool:
    """Whether this process has the claim; asking again does no harm."""
    try:
        fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _booted_elsewhere(place: Path) -> bool:
    """Whether a process that does not know our lock has the database open.

    It looks at the lock that Derby holds on a file of its own, so a killed process leaves nothing behind.
    """
    try:
        with (place / _METASTORE / "dbex.lck").open("r+b") as lock:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def _in_use(folder: Path) -> UseError:
    return UseError(
        f"warehouse = '{folder}' is open in another process, and its embedded metastore serves one at a time: end that "
        "process, or let it do the work.",
        code="USE_WAREHOUSE_IN_USE",
        sql_state="55006",
    )
