"""Tables in folders of this machine: which names stand for them, and what a session would add to their properties."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping
from pathlib import Path

from catalog.errors import FileSystemError, TableError
from catalog.locations import local_path
from sql_ext.spark_defaults import defaults_of

_LOG = "_delta_log"
_BY_PATH = re.compile(r"delta\.`(?P<path>(?:[^`]|``)+)`", re.IGNORECASE)
_TIME_TRAVEL = re.compile(r"(?P<table>.+)@(?:v\d+|\d{17})")
# With one of these, a path without a scheme may belong to another file system than the local one.
_FILE_SYSTEMS = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
_DEFAULT_FILE_SYSTEM = "spark.hadoop.fs.defaultFS"
# Characters of a path that an error shows.
_SHOWN = 200
# Settings of a session below it stand for properties of tables.
_PREFIX = "spark.qbeast."


def local_folder(name: str, environment: Mapping[str, str]) -> Path | None:
    """Returns the folder that a path names; None for the name of a table, and for a path of another file system.

    Args:
        name: as users write it.
        environment: variables.
    """
    quoted = _BY_PATH.fullmatch(name)
    path = name if quoted is None else quoted["path"].replace("``", "`")
    local = local_path(path)
    if local is not None:
        return _plain(local)
    is_elsewhere = any(environment.get(variable) for variable in _FILE_SYSTEMS)
    if not path.startswith("/") or is_elsewhere or _DEFAULT_FILE_SYSTEM in spark_defaults(environment):
        return None
    return _plain(path)


def _plain(path: str) -> Path | None:
    return Path("/" + path.lstrip("/").rstrip("/")) if path.startswith("/") else None


def check_table(name: str, folder: Path) -> None:
    """Refuses a folder that is not the root of a Delta table, as a session would.

    Args:
        name: the table as the user writes it.
        folder: see ``local_folder``.

    Raises:
        TableError: there is no table, or the path is a version or a folder of one.
        FileSystemError: the path cannot be looked at, such as one that is too long.
    """
    try:
        _check_table(name, folder)
    except OSError as error:
        raise FileSystemError.of(name[:_SHOWN], error.strerror or type(error).__name__) from error


def _check_table(name: str, folder: Path) -> None:
    if (folder / _LOG).is_dir():
        return
    travel = _TIME_TRAVEL.fullmatch(str(folder))
    if not folder.exists() and travel is not None and (Path(travel["table"]) / _LOG).is_dir():
        raise TableError.version(name, travel["table"])
    if not folder.exists():
        raise TableError.missing(name, "no such folder")
    root = next((parent for parent in folder.parents if (parent / _LOG).is_dir()), None)
    raise TableError.not_delta(name, "no Delta log there") if root is None else TableError.inside(name, str(root))


def session_properties(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the properties that ``spark-defaults.conf`` sets for all tables of a session.

    Args:
        environment: variables.
    """
    defaults = spark_defaults(environment)
    return {key.removeprefix(_PREFIX): text for key, text in defaults.items() if key.startswith(_PREFIX)}


def spark_defaults(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the settings of the ``spark-defaults.conf`` that a session would read; none without one.

    Args:
        environment: variables.
    """
    folder = environment.get("SPARK_CONF_DIR")
    if not folder:
        home = environment.get("SPARK_HOME") or _package()
        folder = None if home is None else str(Path(home, "conf"))
    return {} if folder is None else defaults_of(Path(folder, "spark-defaults.conf"))


def _package() -> str | None:
    """The folder of the installed pyspark, without an import of it."""
    try:
        found = importlib.util.find_spec("pyspark")
    except ImportError:
        return None
    return None if found is None or found.origin is None else str(Path(found.origin).parent)
