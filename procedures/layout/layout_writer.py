"""Writes rows into the files of a revision and says what each file holds; rewrites and indexed writes share it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession

from catalog.errors import RowsChangedError
from catalog.jvm.file_writer import DataFile, FileWriter
from catalog.jvm.session import MOST_ROWS_KEY, PAGE_ROWS_KEY, SORTED_COLUMNS_KEY
from catalog.table.snapshot import TableSnapshot
from otree.cube import CubeId
from otree.pages import page_rows_of
from otree.revision import Revision
from otree.tree import CubeState, Tree
from procedures.layout.index_columns import columns_of, stored_columns_of
from procedures.layout.row_layout import arranged, lay_out
from procedures.layout.step import Step, StepObserver
from procedures.layout.tags import WrittenFile, carry_thresholds, noted_blocks, read_blocks
from procedures.layout.target import Target


@dataclass(frozen=True)
class LayoutWriter:
    """Writes files within one transaction.

    Attributes:
        session: session of the work; a layout changes one of its settings.
        files: the transaction.
        snapshot: the table that the files join.
        observe: sees the steps ``WRITE`` and ``VERIFY`` before they begin.
        strict: for rewrites: exactly the rows that were measured must be written, and must be counted while they are
            written. A user's write may read its source twice, and its session may collect no statistics: then no rows
            are counted, and the blocks are read from the files.
    """

    session: SparkSession
    files: FileWriter
    snapshot: TableSnapshot
    observe: StepObserver
    strict: bool

    def write_laid_out(
        self,
        target: Target,
        rows: DataFrame,
        output: Sequence[Column] | None = None,
        remaining: Mapping[CubeId, CubeState] | None = None,
        partition_columns: Sequence[str] = (),
    ) -> list[WrittenFile]:
        """Writes rows in files of the target size, each of one band of weights and one run of the curve.

        Args:
            target: the revision and the tree that the rows join.
            rows: the rows; beside those of the target, they may have others, such as those of a change feed.
            output: the columns to write; all when left out.
            remaining: the cubes as the files that stay describe them; those of the target when left out.
            partition_columns: see ``arranged``.

        Returns:
            The files, with their blocks and the thresholds that no row of them carries.

        Raises:
            RowsChangedError: a file does not hold the rows that were counted while it was written, or a strict writer
                has written more rows or fewer than were measured.
        """
        self.files.configure(target.new_properties)
        layout = lay_out(
            target.sample,
            target.tree,
            target.file_share,
            target.beside,
            target.weight_span,
            target.other_values,
            target.sample_fractions,
        )
        self.session.conf.set(MOST_ROWS_KEY, str(layout.largest_file))
        page_rows = int(page_rows_of(target.rows, target.rows + target.beside))
        self.session.conf.set(PAGE_ROWS_KEY, str(page_rows))
        revision = target.columns.revision
        self.session.conf.set(SORTED_COLUMNS_KEY, json.dumps(revision.columns))
        placed = arranged(rows, layout, target.columns, page_rows, partition_columns)
        files = self.write(placed if output is None else placed.select(*output), revision, target.tree)
        self.observe(Step.VERIFY)
        written = self.blocks(files, revision, target.tree)
        count = sum(file.rows for file in written)
        if self.strict and count != target.rows:
            raise RowsChangedError(f"{target.rows} rows were read and {count} written; nothing was committed.")
        return carry_thresholds(written, target.tree, target.remaining if remaining is None else remaining)

    def write(self, rows: DataFrame, revision: Revision, tree: Tree) -> list[DataFile]:
        """Writes rows as they are; counts the rows of each cube of a tree in each file.

        Args:
            rows: the rows.
            revision: their revision.
            tree: thresholds by which they are placed.
        """
        self.observe(Step.WRITE)
        stored = stored_columns_of(self.session, self.snapshot, revision)
        return self.files.write(rows, stored.cube(tree.ordinals()), stored.weight)

    def write_unplaced(self, rows: DataFrame) -> list[DataFile]:
        """Writes rows that belong to no cube, such as none at all."""
        self.observe(Step.WRITE)
        return self.files.write(rows)

    def blocks(self, files: Sequence[DataFile], revision: Revision, tree: Tree) -> list[WrittenFile]:
        """The blocks of written files that have rows, as they were counted while the files were written.

        Args:
            files: what ``write`` returned.
            revision: their revision.
            tree: the tree that ``write`` was given.

        Raises:
            RowsChangedError: nothing was counted, or the counts differ from the files' statistics.
        """
        written = noted_blocks(files, tree)
        if written is not None:
            return _checked(files, written)
        if self.strict:
            raise RowsChangedError("The writer noted no rows; nothing was committed.")
        return self.read_back(files, self.files.read_written(), revision, tree)

    def read_back(
        self, files: Sequence[DataFile], rows: DataFrame, revision: Revision, tree: Tree
    ) -> list[WrittenFile]:
        """The blocks of written files that have rows, read from the files.

        Args:
            files: what ``write`` returned.
            rows: their rows.
            revision: their revision.
            tree: thresholds by which they are placed.

        Raises:
            RowsChangedError: the rows differ from the files' statistics.
        """
        return _checked(files, read_blocks(files, rows, tree, columns_of(self.session, self.snapshot, revision)))


def _checked(files: Sequence[DataFile], written: list[WrittenFile]) -> list[WrittenFile]:
    expected = {file.path: file.rows for file in files}
    for file in written:
        if expected[file.path] not in (file.rows, None):
            raise RowsChangedError(
                f"{expected[file.path]} rows were written to {file.path} and {file.rows} found in it."
            )
    # Spark writes a file without rows where there are none at all.
    return [file for file in written if file.rows]
