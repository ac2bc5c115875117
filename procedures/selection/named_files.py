"""Exactly the files that a caller names become as few files as their size allows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from catalog.counted_nouns import agreeing, counted
from catalog.errors import InvalidArgumentError
from catalog.files.arrays import Floats
from catalog.files.file_table import FileTable
from catalog.table.named_files import spellings
from procedures.groups.cutter import Limits, pieces
from procedures.groups.group import Concatenate, FileRun, InputFile
from procedures.groups.strategy import Finding, SelectionSettings, TableFiles
from procedures.selection.file_division import division, large_files
from procedures.selection.file_places import Scope, candidates, with_boxes, without_ranges

FILES = "files"
_NAMES_SHOWN = 3


def check_one_place(files: FileTable) -> None:
    """Refuses files that cannot become one.

    Args:
        files: the named files.

    Raises:
        InvalidArgumentError: their revisions or partitions differ.
    """
    _check_same(files, files.revision, "revision")
    _check_same(files, files.partition, "partition")


def check_each_once(names: Sequence[str], files: FileTable, location: str) -> None:
    """Refuses a list of names that are not those of different candidates.

    Args:
        names: as the caller spells them.
        files: the files that can be taken.
        location: the table's root.

    Raises:
        InvalidArgumentError: two names mean one file, or other parameters of the call leave a file out.
    """
    path_by_spelling = {unquote(str(path)): str(path) for path in files.path}
    path_by_spelling.update((str(path), str(path)) for path in files.path)
    name_by_path: dict[str, str] = {}
    for name in names:
        path = next((path_by_spelling[s] for s in spellings(name, location) if s in path_by_spelling), None)
        if path is None:
            accepted = f"files that can be taken; revision_id or where leaves this one out ({len(files)} can be taken)"
            raise InvalidArgumentError.of(FILES, name, accepted)
        if path in name_by_path:
            raise InvalidArgumentError.of(FILES, name, f"each file once, and {name_by_path[path]} is the same file")
        name_by_path[path] = name


def _check_same(files: FileTable, values: NDArray[Any], what: str) -> None:
    paths: dict[object, list[str]] = {}
    for path, value in zip(files.path, values.tolist(), strict=True):
        paths.setdefault(value, []).append(str(path))
    if len(paths) < 2:
        return
    shown = "; ".join(f"{what} {value or 'none'}: {_list(names)}" for value, names in sorted(paths.items(), key=str))
    raise InvalidArgumentError.of(FILES, f"{len(files)} files", f"files of one {what}, and these have several: {shown}")


def _list(names: Sequence[str]) -> str:
    rest = len(names) - _NAMES_SHOWN
    return ", ".join(names[:_NAMES_SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def named_groups(files: FileTable, max_bytes: int, strategy: str) -> Iterator[Concatenate]:
    """The groups that join named files, in the order of time.

    A large file is divided and separates no others. A file that would be alone in its result stays as it is.

    Args:
        files: of one revision and partition, with boxes if the loss of clustering is to be told.
        max_bytes: bytes of a result at most.
        strategy: name of the strategy.
    """
    joined = list(_joined(files, max_bytes))
    bands = len({(int(files.band_first[n]), int(files.band_end[n])) for run in joined for n in run})
    counts = np.array([len(run) for run in joined], np.int64)
    for first, end in pieces(counts, Limits(None), files=counts):
        yield _group(files, joined[first:end], strategy, bands)
    for position in large_files(files, max_bytes).tolist():
        yield division(files, position, max_bytes, strategy)


def _joined(files: FileTable, max_bytes: int) -> Iterator[tuple[int, ...]]:
    """Runs of two files or more, of at most this size; large files are in none."""
    rest = np.setdiff1d(np.arange(len(files)), large_files(files, max_bytes))
    for first, end in pieces(files.size[rest], Limits(max_bytes)):
        if end - first > 1:
            yield tuple(rest[first:end].tolist())


def _group(files: FileTable, runs: Sequence[tuple[int, ...]], strategy: str, bands: int) -> Concatenate:
    chosen = InputFile.of(files, [position for run in runs for position in run])
    named = tuple(FileRun.of(files, run) for run in runs)
    count = len(chosen)
    note = (
        f"{counted(count, 'named file')} {agreeing(count, 'becomes', 'become')} {len(runs)}{_loss(files, runs, bands)}"
    )
    revision = int(files.revision[runs[0][0]])
    return Concatenate(strategy, revision, f"NAMED_FILES_{count}_TO_{len(runs)}", chosen, note, runs=named)


def _loss(files: FileTable, runs: Sequence[tuple[int, ...]], bands: int) -> str:
    """What reads lose in clustering, as far as the log tells."""
    notes = []
    growth = growth_of_boxes(files, runs)
    if growth is not None and growth > 1.0:
        notes.append(f"the boxes of the new files are {growth:.3g} times as large as those of their files together")
    if bands > 1:
        notes.append(f"files of {bands} ranges of weights are mixed, so that small samples read more")
    if notes:
        return "; clustering is lost: " + ", and ".join(notes)
    return "" if growth is None else "; no clustering is lost"


def growth_of_boxes(files: FileTable, runs: Sequence[tuple[int, ...]]) -> float | None:
    """Returns the volume of the boxes around runs, in multiples of the volumes of their files.

    Args:
        files: the files; None is returned if they have no ranges, or none of them is known.
        runs: positions of the files of each run.
    """
    if not files.low.shape[1]:
        return None
    around = within = 0.0
    for run in runs:
        low, high = files.low[list(run)], files.high[list(run)]
        known = ~(np.isnan(low) | np.isnan(high)).any(axis=1)
        if known.any():
            within += float(_volumes(low[known], high[known]).sum())
            around += float(np.prod(high[known].max(axis=0) - low[known].min(axis=0)))
    return around / within if within > 0 else None


def _volumes(low: Floats, high: Floats) -> Floats:
    volumes: Floats = np.prod(high - low, axis=1)
    return volumes


def groups_of_named_files(
    table: TableFiles, settings: SelectionSettings, strategy: str, max_bytes: int
) -> Iterator[Finding]:
    """Joins the files that a caller names. Once a run has begun, only groups that failed by a conflict are planned.

    Args:
        table: its files are the named ones.
        settings: name the files.
        strategy: name of the strategy.
        max_bytes: bytes of a result at most.
    """
    snapshot = table.snapshot
    files, _ = candidates(snapshot, Scope(settings.revision_id, True, None, None, isolated=True))
    if table.run.first is None:
        check_each_once(settings.named_files or (), files, snapshot.location)
        check_one_place(files)
    else:
        files = files.take(np.flatnonzero(files.with_paths(table.run.failed)))
    columns = settings.options["columns"]
    has_boxes = len(files) and (columns is not None or (files.revision > 0).any())
    files = with_boxes(files, snapshot, columns) if has_boxes else without_ranges(files)
    yield from named_groups(files, max_bytes, strategy)
    yield f"{strategy}: none of the named files can be joined or divided"
