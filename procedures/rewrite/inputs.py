"""The files of a group, as one transaction reads them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from catalog.counted_nouns import agreeing, counted
from catalog.errors import ConcurrentChangeError
from catalog.files.file_table import FileTable
from catalog.history.events import FileFacts
from catalog.jvm.table_transaction import TableTransaction
from catalog.state.write_records import WriteRecord
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot
from procedures.groups.group import Concatenate, Group, InputFile


@dataclass(frozen=True)
class Inputs:
    """The files of a group, as one transaction reads them.

    Attributes:
        transaction: reads and replaces them.
        snapshot: the version that it reads.
    """

    transaction: TableTransaction
    snapshot: TableSnapshot

    @classmethod
    def begin(cls, table: ManagedTable, session: SparkSession, group: Group, write: WriteRecord) -> Inputs:
        """Begins a transaction on the newest version that replaces exactly the files of the group.

        Args:
            table: the table.
            session: session of the work.
            group: the files.
            write: the write, whose files get its mark.

        Raises:
            ConcurrentChangeError: some of them were changed since the plan was made.
        """
        transaction = table.transaction(session)
        transaction.mark(write.mark)
        gone = len(group.files) - transaction.replace_files((f.path, f.deletion_vector) for f in group.files)
        if gone:
            raise ConcurrentChangeError(
                f"{gone} of the plan's {counted(len(group.files), 'file')} {agreeing(gone, 'was', 'were')} changed "
                "since it was made."
            )
        if isinstance(group, Concatenate) and group.removal is not None:
            needed = group.removal.dependencies
            changed = len(needed) - transaction.depend_on(needed)
            if changed:
                raise ConcurrentChangeError(
                    f"{counted(changed, 'file')} with later rows {agreeing(changed, 'was', 'were')} changed since "
                    "the plan was made."
                )
        return cls(transaction, TableSnapshot.of(transaction.state(), table.location))


@dataclass(frozen=True)
class InputFacts:
    """What the log tells of the files of a group.

    Attributes:
        facts: the files as the event tells of them.
        rewrites: how many times their rows were rewritten, by path.
        sizes: their bytes, by path.
    """

    facts: tuple[FileFacts, ...]
    rewrites: dict[str, float]
    sizes: dict[str, int]

    @classmethod
    def of(cls, snapshot: TableSnapshot, group: Group) -> InputFacts:
        """Uses what the plan tells, or looks the files up in the list of files.

        Args:
            snapshot: the version that they are read from.
            group: the files.
        """
        sizes = {file.path: file.size for file in group.files}
        planned = {file.path: file.rewrites for file in group.files if file.rewrites is not None}
        if len(planned) == len(group.files):
            return cls(tuple(FileFacts(f.path, f.size, f.rows, (), (), f.level) for f in group.files), planned, sizes)
        columns = snapshot.file_table_if_few
        if columns is None:
            columns = snapshot.only_paths(list(sizes)).file_table
        positions = {file.path: columns.position_of(file.path) for file in group.files}
        rewrites = {path: float(columns.rewrites[position]) for path, position in positions.items()}
        return cls(tuple(_facts_of(columns, file) for file in group.files), rewrites, sizes)

    def rewrites_of(self, paths: tuple[str, ...]) -> float:
        """How many times the rows of some files were rewritten, on average by bytes.

        Args:
            paths: of the files, at least one.
        """
        sizes = np.array([self.sizes[path] for path in paths])
        return _average(np.array([self.rewrites[path] for path in paths]), sizes)


def _average(values: NDArray[np.float64], sizes: NDArray[np.int64]) -> float:
    return float((values * sizes).sum() / max(sizes.sum(), 1))


def _facts_of(columns: FileTable, file: InputFile) -> FileFacts:
    blocks = columns.blocks_in(columns.position_of(file.path))
    return FileFacts(
        path=file.path,
        size=file.size,
        rows=file.rows,
        block_counts=tuple(int(count) for count in blocks.elements),
        cube_ids=tuple(blocks.cube_ids[cube] for cube in blocks.cube),
        level=file.level,
    )
