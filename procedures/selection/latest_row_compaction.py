"""LatestRowCompaction: of the rows of one primary key, only the latest stays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, ClassVar

from catalog.columns.key_columns import key_order
from catalog.counted_nouns import counted
from catalog.errors import InvalidArgumentError, NotSupportedError
from catalog.table.snapshot import TableSnapshot
from procedures.declare.declaration import Parameter
from procedures.groups.plan import FileGroup, FileRun, InputFile, RowRemoval, Selection
from procedures.groups.selection_strategy import (
    SelectionSettings,
    Selector,
    Strategy,
    take_until,
)
from procedures.rewrite.outdated_rows import ALL_TIES, ANY_TIE, TIES, FileWithOutdated, OutdatedRows, numbered
from procedures.selection.duplicate_free_files import ComparedFiles, Numbers

NAME = "LatestRowCompaction"
# Files written together become files of about this size, that of a Spark partition.
_RUN_BYTES = 128 * 1024**2
# Each iteration compares all rows anew: a run has about so many at most, however few bytes are asked for.
_MOST_ITERATIONS = 8
# More new files than this are not told apart from the others: all files are compared.
_MOST_NEW_FILES = 10_000
_APPEND_ONLY = "delta.appendOnly"
_NOTHING = Selection(note=f"{NAME}: every row is the latest of its key")
_COMPARED = ComparedFiles()
_LATER, _LATER_OR_TIED = "later rows", "later rows, or one equally late row that stays,"


def choose(
    files: Sequence[FileWithOutdated], bytes_per_iter: int, retention_hours: float, ties: str = ALL_TIES
) -> tuple[FileGroup, tuple[FileWithOutdated, ...]] | None:
    """Takes files of the first revision that has any, those first that lose the largest share of their rows; pure.

    Args:
        files: the files with outdated rows.
        bytes_per_iter: bytes after which no further file is taken; an eighth of the bytes of all files if that is more.
        retention_hours: how long the table keeps removed files, for people.
        ties: whether all rows with the greatest order stay, or any one of them, for people.

    Returns:
        The group without its removal, and its files; None if there are none.
    """
    if not files:
        return None
    revision_id = min(f.revision_id for f in files)
    of_revision = sorted((f for f in files if f.revision_id == revision_id), key=lambda f: (-f.share, f.file.path))
    by_path = {f.file.path: f for f in of_revision}
    most_bytes = max(bytes_per_iter, sum(f.file.size for f in files) // _MOST_ITERATIONS)
    inputs = take_until((f.file for f in of_revision), most_bytes)
    taken = tuple(by_path[file.path] for file in inputs)
    remaining = [f for f in taken if f.file.rows is None or f.outdated < f.file.rows]
    runs = tuple(_runs(remaining))
    outdated = sum(f.outdated for f in taken)
    read, written = sum(f.file.size for f in remaining), sum(map(_expected_bytes, remaining))
    freed = sum(f.file.size for f in taken) - written
    why = _LATER_OR_TIED if ties == ANY_TIE else _LATER
    note = (
        f"removes {counted(outdated, 'row')} of {counted(len(taken), 'file')} because of {why} with the same key; "
        f"reads {read} bytes, writes about {written} in {counted(len(runs), 'file')}, and frees about {freed} once "
        f"vacuum removes the old files, which the table keeps for {retention_hours:g} hours"
    )
    return FileGroup(NAME, revision_id, f"OUTDATED_ROWS_{outdated}", inputs, note, runs=runs), taken


def _expected_bytes(file: FileWithOutdated) -> int:
    return int(file.file.size * (1.0 - file.share))


def _runs(files: Sequence[FileWithOutdated]) -> Iterator[FileRun]:
    """Unindexed files of a partition become files together, in the order of their times; an indexed file stays one."""
    indexed = [f for f in files if f.revision_id]
    yield from (FileRun((f.file.path,), f.tier or None) for f in indexed)
    unindexed = sorted((f for f in files if not f.revision_id), key=lambda f: (f.partition, *_age(f.file)))
    for _, members in groupby(unindexed, key=lambda f: f.partition):
        run: list[FileWithOutdated] = []
        size = 0
        for member in members:
            if run and size + _expected_bytes(member) > _RUN_BYTES:
                yield _file_run(run)
                run, size = [], 0
            run.append(member)
            size += _expected_bytes(member)
        yield _file_run(run)


def _age(file: InputFile) -> tuple[int, str]:
    return file.first_time, file.path


def _file_run(run: Sequence[FileWithOutdated]) -> FileRun:
    return FileRun(tuple(f.file.path for f in run), max(f.tier for f in run) or None)


class LatestRowCompaction(Strategy):
    """Removes the rows of a primary key that have a later row; the rows that stay keep their order and their index."""

    name: ClassVar[str] = NAME
    doc: ClassVar[str] = "Keeps only the latest row of each primary key; removes the others from the table."
    needs_index_columns: ClassVar[bool] = False
    options: ClassVar[tuple[Parameter, ...]] = (
        Parameter("primary_key", "STRING", "Columns that together name a row, separated by commas."),
        Parameter("order_by", "STRING", "Column whose greatest value is that of the latest row of a key."),
        Parameter(
            "ties",
            "STRING",
            "Which rows stay if several rows of a key have the greatest value: all of them, or any one.",
            ALL_TIES,
        ),
    )

    def check_options(self, options: Mapping[str, Any]) -> None:
        """See ``Strategy.check_options``."""
        if options["ties"] not in TIES:
            raise InvalidArgumentError.of("ties", options["ties"], f"one of {', '.join(TIES)}")

    def begin(self, settings: SelectionSettings) -> Selector:
        """See ``Strategy.begin``."""
        return _LatestRowSelector(settings)


class _LatestRowSelector(Selector):
    """Compares the rows of each version once; the group of a version is committed before the next comparison."""

    def __init__(self, settings: SelectionSettings) -> None:
        super().__init__(settings)
        self._version = -1

    def select(self, snapshot: TableSnapshot) -> Selection:
        """See ``Selector.select``; reads the columns of the key and of the order besides metadata."""
        options = self.settings.options
        order = key_order(snapshot.schema, ("primary_key", options["primary_key"]), ("order_by", options["order_by"]))
        if snapshot.configuration.get(_APPEND_ONLY, "false").lower() == "true":
            raise NotSupportedError(f"No row may be removed from a table with {_APPEND_ONLY} = true.")
        if snapshot.version == self._version:
            return _NOTHING
        self._version = snapshot.version
        ties = options["ties"]
        key = snapshot.location, snapshot.table_id, tuple(c.stored for c in order.key), order.order.stored, ties
        numbers = _numbers(snapshot)
        new = _COMPARED.new_among(key, numbers)
        if not len(new):
            return _NOTHING
        some = new.tolist() if len(new) < min(len(numbers), _MOST_NEW_FILES) else None
        outdated = OutdatedRows.find(snapshot, order, ties, some)
        chosen = choose(outdated.files, self.settings.bytes_per_iter, snapshot.retention_hours, ties)
        if chosen is None:
            if not snapshot.restrictions:
                _COMPARED.put(key, numbers)
            return _NOTHING
        group, taken = chosen
        paths = {f.file.path for f in taken}
        others = tuple((f.path, f.deletion_vector) for f in outdated.later if f.path not in paths)
        removal = RowRemoval(outdated.of(taken), sum(f.outdated for f in taken), order, others)
        return Selection(replace(group, removal=removal))


def _numbers(snapshot: TableSnapshot) -> Numbers:
    files = numbered(snapshot.log_files.select("path"), snapshot.location)
    numbers: Numbers = files.select("number").toArrow()["number"].to_numpy()
    return numbers
