"""LatestRowCompaction: of the rows of one primary key, only the latest stays."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from catalog.columns.key_columns import key_order
from catalog.counted_nouns import counted
from catalog.errors import ConcurrentChangeError, NotSupportedError
from catalog.files.arrays import Integers
from catalog.quantities import size_text
from catalog.settings.setting import Setting, choice
from catalog.settings.strategy_options import ORDER_BY, PRIMARY_KEY
from procedures.declare.option import option
from procedures.declare.signature import Parameter
from procedures.groups.cutter import Limits, first_piece, pieces
from procedures.groups.group import Concatenate, FileRun, InputFile, RowRemoval
from procedures.groups.strategy import Finding, SelectionSettings, Strategy, TableFiles
from procedures.rewrite.outdated_rows import ALL_TIES, ANY_TIE, FileWithOutdated, OutdatedRows, numbers_of
from procedures.rewrite.outdated_rows import TIES as TIE_RULES

NAME = "LatestRowCompaction"
TIES = Setting(
    "ties",
    choice(TIE_RULES, f"one of {', '.join(TIE_RULES)}"),
    "Which rows stay if several rows of a key have the greatest value: all of them, or any one.",
    ALL_TIES,
)
# Files written together become files of about this size, that of a Spark partition.
_RUN_BYTES = 128 * 1024**2
# Each iteration compares all rows anew: a run has about so many at most, however few bytes are asked for.
_MOST_ITERATIONS = 8
# More new files than this are not told apart from the others: all files are compared.
_MOST_NEW_FILES = 10_000
_APPEND_ONLY = "delta.appendOnly"
_NOTHING = f"{NAME}: every row is the latest of its key"
_LATER, _LATER_OR_TIED = "later rows", "later rows, or one equally late row that stays,"
# Tables and files of which it is kept that they were compared.
_MAX_COMPARED_TABLES, _MAX_COMPARED_FILES = 64, 4_000_000


class ComparedFiles:
    """Integers of files per table and key. Any subset of such files holds no two rows of one key either.

    A file with another deletion vector is another file: ``RESTORE`` brings rows back.

    It forgets the tables that were not asked for the longest. Then all files of such a table are compared again.
    """

    def __init__(self) -> None:
        """Starts empty."""
        self._lock = threading.Lock()
        self._files: OrderedDict[Hashable, Integers] = OrderedDict()

    def put(self, key: Hashable, numbers: Integers) -> None:
        """Notes that the files of a table were compared with each other.

        Args:
            key: table, primary key and order.
            numbers: of the files.
        """
        with self._lock:
            self._files[key] = numbers
            self._files.move_to_end(key)
            while len(self._files) > _MAX_COMPARED_TABLES or sum(map(len, self._files.values())) > _MAX_COMPARED_FILES:
                self._files.popitem(last=False)

    def are_new(self, key: Hashable, numbers: Integers) -> NDArray[np.bool_]:
        """Returns which files have to be compared: all but those that were compared with each other before.

        Args:
            key: table, primary key and order.
            numbers: of the files that the table has.
        """
        with self._lock:
            known = self._files.get(key)
            if known is None:
                return np.ones(len(numbers), bool)
            self._files.move_to_end(key)
        return np.isin(numbers, known, invert=True)


_COMPARED = ComparedFiles()


def first_files(
    files: Sequence[FileWithOutdated], bytes_per_iter: int, budget_bytes: int | None = None
) -> tuple[FileWithOutdated, ...]:
    """Takes files of the first revision that has any, those first that lose the largest share of their rows; pure.

    Args:
        files: the files with outdated rows.
        bytes_per_iter: bytes after which no further file is taken; an eighth of the bytes of all files if that is more.
        budget_bytes: bytes after which no further file is taken in any case; None = no such limit.
    """
    revision_id = min((f.revision_id for f in files), default=0)
    of_revision = sorted((f for f in files if f.revision_id == revision_id), key=lambda f: (-f.share, f.file.path))
    most_bytes = max(bytes_per_iter, sum(f.file.size for f in files) // _MOST_ITERATIONS)
    most_bytes = most_bytes if budget_bytes is None else min(most_bytes, budget_bytes)
    return tuple(of_revision[: first_piece(_sizes(f.file.size for f in of_revision), most_bytes)])


def group_of(taken: Sequence[FileWithOutdated], retention_hours: float, ties: str, removal: RowRemoval) -> Concatenate:
    """The group that removes outdated rows; pure.

    Args:
        taken: files of one revision, at least one.
        retention_hours: how long the table keeps removed files, for people.
        ties: whether all rows with the greatest order stay, or any one of them, for people.
        removal: the rows.
    """
    remaining = [f for f in taken if f.file.rows is None or f.outdated < f.file.rows]
    runs = tuple(_runs(remaining))
    outdated = sum(f.outdated for f in taken)
    read, written = sum(f.file.size for f in remaining), sum(map(_expected_bytes, remaining))
    freed = sum(f.file.size for f in taken) - written
    why = _LATER_OR_TIED if ties == ANY_TIE else _LATER
    note = (
        f"removes {counted(outdated, 'row')} of {counted(len(taken), 'file')} because of {why} with the same key; "
        f"reads {size_text(read)}, writes about {size_text(written)} in {counted(len(runs), 'file')}, and frees about "
        f"{size_text(freed)} once vacuum removes the old files, which the table keeps for {retention_hours:g} hours"
    )
    reason, files = f"OUTDATED_ROWS_{outdated}", tuple(f.file for f in taken)
    return Concatenate(NAME, taken[0].revision_id, reason, files, note, runs=runs, removal=removal)


def _sizes(sizes: Iterable[int]) -> Integers:
    return np.array(list(sizes), np.int64)


def _expected_bytes(file: FileWithOutdated) -> int:
    return int(file.file.size * (1.0 - file.share))


def _runs(files: Sequence[FileWithOutdated]) -> Iterator[FileRun]:
    """Unindexed files of a partition become files together, in the order of their times; an indexed file stays one."""
    indexed = [f for f in files if f.revision_id]
    yield from (FileRun((f.file.path,), f.tier or None) for f in indexed)
    unindexed = sorted((f for f in files if not f.revision_id), key=lambda f: (f.partition, *_age(f.file)))
    for _, of_partition in groupby(unindexed, key=lambda f: f.partition):
        members = list(of_partition)
        for first, end in pieces(_sizes(map(_expected_bytes, members)), Limits(_RUN_BYTES)):
            yield _file_run(members[first:end])


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
        option(PRIMARY_KEY, required=True),
        option(ORDER_BY, required=True),
        option(TIES),
    )

    def groups(self, table: TableFiles, settings: SelectionSettings) -> Iterator[Finding]:
        """See ``Strategy.groups``; reads the columns of the key and of the order besides metadata.

        The rows of a version are compared once, for one group: after its commit other rows are the latest.
        """
        snapshot, options = table.snapshot, settings.options
        key, order_by = ((name, options[name]) for name in (PRIMARY_KEY.name, ORDER_BY.name))
        order = key_order(snapshot.schema, key, order_by)
        if order.stored != key_order(table.first.snapshot.schema, key, order_by).stored:
            raise ConcurrentChangeError("The columns of the key or of its order were renamed during the run.")
        if snapshot.configuration.get(_APPEND_ONLY, "false").lower() == "true":
            raise NotSupportedError(f"No row may be removed from a table with {_APPEND_ONLY} = true.")
        ties = options[TIES.name]
        compared = snapshot.location, snapshot.table_id, order.stored, ties
        numbers, versions = numbers_of(snapshot)
        new = numbers[_COMPARED.are_new(compared, versions)]
        if not len(new):
            yield _NOTHING
            return
        some = new.tolist() if len(new) < min(len(numbers), _MOST_NEW_FILES) else None
        outdated = OutdatedRows.find(snapshot, order, ties, some)
        taken = first_files(outdated.files, settings.bytes_per_iter, settings.budget_bytes)
        if taken:
            paths = {f.file.path for f in taken}
            others = tuple((f.path, f.deletion_vector) for f in outdated.later if f.path not in paths)
            removal = RowRemoval(outdated.of(taken), sum(f.outdated for f in taken), order, others)
            yield group_of(taken, snapshot.retention_hours, ties, removal)
            return
        if not snapshot.restrictions:
            _COMPARED.put(compared, versions)
        yield _NOTHING
