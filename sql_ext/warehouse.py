"""A self-contained warehouse folder with tables and the metastore that stores their names."""

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
# A table name cannot start with an underscore without quotes, and readers of files skip such names.
_METASTORE = "_metastore"
_METASTORE_LOG = "_metastore.log"
# Characters that would end the path in a JDBC URL or an option of the JVM.
_REJECTED_CHARACTERS = (";", '"', "\n")

# A process that is ending releases its lock within this time.
_SECONDS_FOR_PREDECESSOR = 5.0
_SECONDS_BETWEEN_ATTEMPTS = 0.1

# Held until the process ends, as Derby holds its database.
_held: dict[Path, IO[bytes]] = {}


def warehouse_conf(folder: Path) -> dict[str, str]:
    """Returns the settings of Spark for a warehouse folder, without creating it.

    ``with_warehouse`` combines ``spark.driver.extraJavaOptions`` with the options of the caller.

    Args:
        folder: folder of the warehouse; ``open_warehouse`` creates it.

    Raises:
        InvalidArgumentError: the path contains a character that the settings do not support.
    """
    place = folder.absolute()
    if any(character in str(place) for character in _REJECTED_CHARACTERS):
        raise InvalidArgumentError.of("warehouse", str(folder), "a path without semicolons, quotes and line breaks")
    return {
        "spark.sql.warehouse.dir": str(place),
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={place / _METASTORE};create=true",
        JAVA_OPTIONS_KEY: f'"-D{DERBY_LOG}={metastore_log(folder)}"',
    }


def with_warehouse(conf: dict[str, str], folder: Path) -> dict[str, str]:
    """Adds the settings of the warehouse: the JVM's options are combined, all others take precedence.

    Args:
        conf: settings of Spark.
        folder: folder of the warehouse.

    Raises:
        InvalidArgumentError: see ``warehouse_conf``.
    """
    settings = warehouse_conf(folder)
    options = " ".join(part for part in (conf.get(JAVA_OPTIONS_KEY, ""), settings[JAVA_OPTIONS_KEY]) if part)
    return {**conf, **settings, JAVA_OPTIONS_KEY: options}


def metastore_log(folder: Path) -> Path:
    """Returns the path of the embedded database's log, which would otherwise be in the working directory."""
    return folder.absolute() / _METASTORE_LOG


def open_warehouse(
    folder: Path,
    seconds: float = _SECONDS_FOR_PREDECESSOR,
    clock: Callable[[], float] = SYSTEM_CLOCK.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Creates the folder if it is missing, and locks its metastore until this process ends.

    Two processes that start at the same time would both find the database closed, so each acquires a separate lock
    first. The JVM of a killed process closes the database a moment later.

    Args:
        folder: folder of the warehouse.
        seconds: maximum time to wait for another process that has the metastore open.
        clock: returns the time in seconds.
        pause: sleeps for a number of seconds.

    Raises:
        InvalidArgumentError: the path is not a folder.
        WriteDeniedError: the folder cannot be created or written to.
        UseError: another process has the metastore open and did not end within ``seconds``.
    """
    place = folder.absolute()
    if place.exists() and not place.is_dir():
        raise InvalidArgumentError.of("warehouse", str(folder), "a folder, or a path where one can be created")
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
    """Locks the file and returns whether this process holds the lock; can be repeated."""
    try:
        fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _booted_elsewhere(place: Path) -> bool:
    """Whether a process that does not use the lock of USE has the database open.

    This checks the lock that Derby holds on its own file, which ends with the process.
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
        f"warehouse = '{folder}' is open in another process, and its embedded metastore serves one process at a time: "
        "stop that process, or run the command in it.",
        code="USE_WAREHOUSE_IN_USE",
        sql_state="55006",
    )
