"""What stands for the texts of commits and their statistics, from which a run finds recent statements."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from catalog.insights import recent_statements
from catalog.jvm.files import TextFile
from simulation.surroundings.paths import ROOT

if TYPE_CHECKING:
    from catalog.table.snapshot import TableSnapshot
    from simulation.delta_log import AddedFile, Commit
    from simulation.surroundings.sessions import Session


def text_file(spark: Session, path: str, _: int) -> TextFile:
    """See ``catalog.jvm.files.text_file``; for files of commits."""
    log, version = spark.world.log, _version(path)
    log.read("statements")
    if version not in log.stored:
        raise ValueError(f"{path} is missing")
    commit = log.commits[version]
    return TextFile(commit.time, "\n".join(json.dumps(line) for line in _lines(commit)))


def exists(spark: Session, _: str, path: str) -> bool:
    """See ``catalog.jvm.log_probe.exists``; for files of commits."""
    spark.world.log.read("statements")
    return _version(path) in spark.world.log.stored


def _version(path: str) -> int:
    return int(path.rsplit("/", 1)[1].removesuffix(".json"))


def _lines(commit: Commit) -> list[Mapping[str, Any]]:
    info = {
        "operation": commit.operation,
        "timestamp": commit.time,
        "isBlindAppend": commit.operation == "WRITE",
        "operationParameters": dict(commit.parameters),
        "operationMetrics": dict(commit.metrics),
    }
    added = [{"path": f.path, "modificationTime": f.time, "dataChange": commit.data_change} for f in commit.added]
    removed = [{"path": f.path, "dataChange": commit.data_change} for f in commit.removed]
    return [{"commitInfo": info}, *({"remove": action} for action in removed), *({"add": action} for action in added)]


def files_of(snapshot: TableSnapshot, columns: Sequence[Any], actions: Sequence[Mapping[str, Any]]) -> Any:
    """See ``recent_statements._files``: a ``remove`` has no ranges."""
    world: Any = snapshot.spark.world  # type: ignore[attr-defined]
    unknown = (np.nan, np.nan)
    paths = tuple(action["path"] for action in actions)
    ranges = [row_range(world, action["path"]) if "modificationTime" in action else unknown for action in actions]
    low, high = (np.array([[pair[n]] for pair in ranges], np.float64).reshape(len(paths), 1) for n in (0, 1))
    return recent_statements._Files(paths, ("",) * len(paths), low, high)


def row_range(world: Any, path: str) -> tuple[float, float]:
    """The smallest and the largest row of a file, NaN if the file is gone or has no rows."""
    stored = world.store.objects.get(f"{ROOT}/{path}")
    return (min(stored.data), max(stored.data)) if stored is not None and stored.data else (np.nan, np.nan)


def ranges_of(world: Any, files: Sequence[AddedFile]) -> tuple[Any, Any]:
    """The ranges of files as ``FileTable`` has them."""
    pairs = np.array([row_range(world, file.path) for file in files], np.float64).reshape(len(files), 2)
    return pairs[:, :1], pairs[:, 1:]
