"""The live files of one version as a table of columns in the driver's memory: the only list of files."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from sys import getsizeof
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from catalog.files.arrays import (
    Flags,
    Floats,
    Integers,
    digits,
    flags,
    group_numbers,
    integers,
    interned,
    numbered_column,
    strings,
    sums,
    vectors,
)
from otree.cube_map import CubeMap
from otree.revision import Revision
from otree.tree import CubeState

# A million files with two blocks each take about 0.4 GB of the Python process.
MAX_FILES = 2_000_000
# Files of recent versions that are kept; larger tables are read whenever they are needed.
MAX_KEPT_BYTES = 1_000_000_000

# Measured, upper bounds: an empty list with its key, the place of a string, the columns of a file and a block.
_BYTES_PER_LIST = 10_000
_BYTES_PER_STRING = 16
_BYTES_PER_FILE = 150
_BYTES_PER_BLOCK = 40


@dataclass(frozen=True, eq=False)
class Blocks:
    """Blocks of files, in the order of the files. All arrays have one entry per block.

    Attributes:
        file: position of the file in its ``FileTable``.
        cube: number of the cube; numbers are in the order of the ids.
        cube_ids: the id of each number.
        min_weight: smallest weight.
        max_weight: largest weight that the cube may have.
        elements: number of rows.
    """

    file: Integers
    cube: Integers
    cube_ids: tuple[str, ...]
    min_weight: Integers
    max_weight: Integers
    elements: Integers

    def where(self, keep: Flags | Integers | slice) -> Blocks:
        """Returns some of the blocks.

        Args:
            keep: whether a block is kept; or positions, in the order wanted; or a range of positions.
        """
        columns = (self.file, self.cube, self.min_weight, self.max_weight, self.elements)
        file, cube, low, high, elements = (column[keep] for column in columns)
        return Blocks(file, cube, self.cube_ids, low, high, elements)


@dataclass(frozen=True, eq=False)
class FileTable:
    """Live files, in the order of their paths unless said otherwise, with the columns of ``TableSnapshot.files``.

    All arrays have one entry per file.

    Attributes:
        path: as in the log.
        deletion_vector: unique id, '' without one.
        size: bytes.
        modification_time: epoch milliseconds.
        rows: rows that no deletion vector hides; ``UNKNOWN`` without statistics.
        revision: 0 = unindexed.
        write: number of the write that made the file; numbers are in the order of the ids.
        first_time: first modification time of the files its rows came from.
        last_time: last one.
        outdated: tagged as before version 0.6 of the format.
        unreadable: tagged, and unindexed because the tags or their revision cannot be read.
        band_first: first weight of the band that the file was written for; ``UNKNOWN`` without one.
        band_end: first weight above it; ``UNKNOWN`` without one.
        rewrites: how many times optimizations have written the rows, on average.
        low: smallest value in each column of the newest revision; NaN where it is not known. Shape (files, columns).
        high: largest value, likewise.
        tagged_revision: number of the revision that the tags name, readable or not; ``UNKNOWN`` without one.
        deleted: rows that a deletion vector hides.
        tier: size tier that clustering has lifted the file to; 0 without one.
        partition: values of the partition columns as text, equal for files of one partition.
        blocks: the blocks of indexed files.
        write_ids: the id of each number of a write.
    """

    path: NDArray[np.object_]
    deletion_vector: NDArray[np.object_]
    size: Integers
    modification_time: Integers
    rows: Integers
    revision: Integers
    write: Integers
    first_time: Integers
    last_time: Integers
    outdated: Flags
    unreadable: Flags
    band_first: Integers
    band_end: Integers
    rewrites: Floats
    low: Floats
    high: Floats
    tagged_revision: Integers
    deleted: Integers
    tier: Integers
    partition: NDArray[np.object_]
    blocks: Blocks
    write_ids: tuple[str, ...] = ()

    @classmethod
    def of(cls, files: pa.Table) -> FileTable:
        """Makes a table of the rows of ``TableSnapshot.files``.

        Args:
            files: rows in any order; columns that are not needed are ignored.
        """
        files = files.sort_by("path")
        width = int(pc.max(pc.list_value_length(files["low"])).as_py() or 0)
        write, write_ids = numbered_column(files["write_id"].combine_chunks())
        return cls(
            path=strings(files["path"]),
            deletion_vector=strings(files["deletion_vector"]),
            size=integers(files["size"]),
            modification_time=integers(files["modification_time"]),
            rows=integers(files["rows"]),
            revision=integers(files["revision"]),
            write=write,
            first_time=integers(files["first_time"]),
            last_time=integers(files["last_time"]),
            outdated=flags(files["outdated"]),
            unreadable=flags(files["unreadable"]),
            band_first=integers(files["band_first"]),
            band_end=integers(files["band_end"]),
            rewrites=np.asarray(files["rewrites"].to_numpy(), np.float64),
            low=vectors(files["low"], width),
            high=vectors(files["high"], width),
            tagged_revision=integers(files["tagged_revision"]),
            deleted=integers(files["deleted"]),
            tier=integers(files["tier"]),
            partition=interned(files["partition"]),
            blocks=_blocks(files["blocks"]),
            write_ids=write_ids,
        )

    def __len__(self) -> int:
        """The number of files."""
        return len(self.path)

    @classmethod
    def empty(cls) -> FileTable:
        """The files of a table that has none."""
        numbers, none = np.zeros(0, np.int64), np.zeros(0, np.object_)
        flags, ranges = np.zeros(0, np.bool_), np.zeros((0, 0))
        blocks = Blocks(numbers, numbers, (), numbers, numbers, numbers)
        kinds: dict[str, Any] = {
            "path": none,
            "deletion_vector": none,
            "partition": none,
            "outdated": flags,
            "unreadable": flags,
        }
        kinds |= {"rewrites": np.zeros(0), "low": ranges, "high": ranges, "blocks": blocks, "write_ids": ()}
        return cls(**{name: kinds.get(name, numbers) for name in cls.__dataclass_fields__})

    @cached_property
    def kept_bytes(self) -> int:
        """About how many bytes of memory they take."""
        vectors, partitions = filter(None, self.deletion_vector), set(self.partition)
        sizes = [*map(getsizeof, chain(self.path, vectors, partitions, self.write_ids, self.blocks.cube_ids))]
        of_columns = _BYTES_PER_FILE * len(self) + self.low.nbytes + self.high.nbytes
        of_strings = sum(sizes) + _BYTES_PER_STRING * len(sizes)
        return _BYTES_PER_LIST + of_strings + of_columns + _BYTES_PER_BLOCK * len(self.blocks.file)

    def where(self, keep: Flags) -> FileTable:
        """Returns some of the files, with their blocks.

        Args:
            keep: whether a file is kept.
        """
        blocks = self.blocks.where(keep[self.blocks.file])
        position = np.cumsum(keep) - 1
        columns = {name: getattr(self, name)[keep] for name in _PER_FILE}
        return replace(self, **columns, blocks=replace(blocks, file=position[blocks.file]))

    def take(self, positions: Integers) -> FileTable:
        """Returns some of the files in another order; the level of each stays as it is among all files.

        Args:
            positions: of the files, each once.
        """
        new = np.full(len(self), -1, np.int64)
        new[positions] = np.arange(len(positions))
        blocks = self.blocks.where(new[self.blocks.file] >= 0)
        order = np.argsort(new[blocks.file], kind="stable")
        of_blocks = {name: getattr(blocks, name)[order] for name in ("cube", "min_weight", "max_weight", "elements")}
        columns = {name: getattr(self, name)[positions] for name in _PER_FILE}
        blocks = Blocks(file=new[blocks.file][order], cube_ids=blocks.cube_ids, **of_blocks)
        taken = replace(self, **columns, blocks=blocks)
        taken.__dict__["levels"] = self.levels[positions]
        return taken

    def with_ranges(self, low: Floats, high: Floats) -> FileTable:
        """Returns the same files with other ranges of values.

        Args:
            low: smallest values, shape (files, columns).
            high: largest ones.
        """
        changed = replace(self, low=low, high=high)
        changed.__dict__["levels"] = self.levels
        return changed

    def updated(self, gone: Collection[str], added: FileTable) -> FileTable:
        """Returns the files of a later version.

        Args:
            gone: paths of files that the later version does not have, or has as they are in ``added``.
            added: the files that it has instead or in addition, with ranges of the same columns.
        """
        # The ranges of no files have no width.
        if not len(self) or not len(added):
            return self.where(~self.with_paths(gone)) if len(self) else added
        former = self.where(~self.with_paths(gone))._without_unused_writes()
        write_ids, old_write, new_write = _merged(former.write_ids, added.write_ids)
        cube_ids, old_cube, new_cube = _merged(former.blocks.cube_ids, added.blocks.cube_ids)
        former = former._numbered_anew(write_ids, old_write, cube_ids, old_cube)
        added = added._numbered_anew(write_ids, new_write, cube_ids, new_cube)
        # Both are in the order of their paths.
        places = np.searchsorted(former.path, added.path)
        columns = {name: np.insert(getattr(former, name), places, getattr(added, name), axis=0) for name in _PER_FILE}
        shifted = np.arange(len(former)) + np.searchsorted(places, np.arange(len(former)), side="right")
        inserted = places + np.arange(len(added))
        file = np.concatenate([shifted[former.blocks.file], inserted[added.blocks.file]])
        order = np.argsort(file, kind="stable")
        of_blocks = {
            name: np.concatenate([getattr(former.blocks, name), getattr(added.blocks, name)])[order]
            for name in ("cube", "min_weight", "max_weight", "elements")
        }
        return replace(former, **columns, blocks=Blocks(file=file[order], cube_ids=cube_ids, **of_blocks))

    def _without_unused_writes(self) -> FileTable:
        """The same files; if fewer than half of the writes have a file left, the others are forgotten."""
        used, write = np.unique(self.write, return_inverse=True)
        if len(self.write_ids) <= 2 * len(used):
            return self
        return replace(self, write=write, write_ids=tuple(self.write_ids[number] for number in used))

    def _numbered_anew(
        self, write_ids: tuple[str, ...], write: Integers, cube_ids: tuple[str, ...], cube: Integers
    ) -> FileTable:
        blocks = replace(self.blocks, cube=cube[self.blocks.cube], cube_ids=cube_ids)
        return replace(self, write=write[self.write], blocks=blocks, write_ids=write_ids)

    def with_paths(self, paths: Collection[str]) -> Flags:
        """Whether the path of each file is among some."""
        wanted = frozenset(paths)
        return np.fromiter((path in wanted for path in self.path), np.bool_, len(self))

    @cached_property
    def levels(self) -> Integers:
        """The level of each file, as ``file_levels`` defines it; -1 when all its blocks are empty."""
        blocks = self.blocks.where(self.blocks.elements > 0)
        of_file = blocks.file
        group, groups = group_numbers(self.revision[of_file], blocks.cube, self.write[of_file])
        largest = np.zeros(len(self), np.int64)
        np.maximum.at(largest, of_file, sums(group, groups, blocks.elements)[group])
        return digits(largest) - 1

    def position_of(self, path: str) -> int:
        """The position of the file with a path.

        Raises:
            KeyError: there is none.
        """
        return self._positions[path]

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {path: position for position, path in enumerate(self.path)}

    def blocks_in(self, position: int) -> Blocks:
        """Returns the blocks of one file.

        Args:
            position: of the file.
        """
        first, end = np.searchsorted(self.blocks.file, [position, position + 1])
        return self.blocks.where(slice(first, end))

    def blocks_of(self, revision_id: int) -> Blocks:
        """Returns the blocks of a revision that have rows.

        Args:
            revision_id: number of the revision.
        """
        blocks = self.blocks
        return blocks.where((self.revision[blocks.file] == revision_id) & (blocks.elements > 0))

    def rows_of_cubes(self, revision: Revision | None) -> Integers:
        """Returns the number of rows of each cube of a revision that has blocks, in the order of the ids.

        Args:
            revision: the revision; without one, there are no cubes.
        """
        of_revision = self.revision == revision.revision_id if revision is not None else np.zeros(len(self), np.bool_)
        blocks = self.blocks.where(of_revision[self.blocks.file])
        cubes, group = np.unique(blocks.cube, return_inverse=True)
        return sums(group, len(cubes), blocks.elements)

    def cube_states(
        self, revision: Revision, without: Sequence[str] = (), *, largest: bool = False
    ) -> CubeMap[CubeState]:
        """Returns the current tree of a revision; see ``TableSnapshot.cube_states``."""
        keep = self.revision == revision.revision_id
        if without:
            keep &= ~self.with_paths(without)
        blocks = self.blocks.where(keep[self.blocks.file])
        bounds = np.iinfo(np.int64)
        choose, no_block = (np.maximum, bounds.min) if largest else (np.minimum, bounds.max)
        threshold = np.full(len(blocks.cube_ids), no_block)
        choose.at(threshold, blocks.cube, blocks.max_weight)
        elements = sums(blocks.cube, len(blocks.cube_ids), blocks.elements)
        live = np.flatnonzero(threshold != no_block)
        states = map(CubeState, threshold[live].tolist(), elements[live].tolist())
        texts = (blocks.cube_ids[cube] for cube in live.tolist())
        return CubeMap(revision.dimensions, dict(zip(texts, states, strict=True)))


_PER_FILE = tuple(name for name in FileTable.__dataclass_fields__ if name not in ("blocks", "write_ids"))


def _merged(former: tuple[str, ...], added: tuple[str, ...]) -> tuple[tuple[str, ...], Integers, Integers]:
    """Merges two ordered lists of names; returns the new number of each name of the one and of the other."""
    known = set(former)
    new = [name for name in added if name not in known]
    places = np.array([bisect_left(former, name) for name in new], np.int64)
    merged = tuple(np.insert(np.array(former, np.object_), places, np.array(new, np.object_))) if new else former
    numbers = np.arange(len(former), dtype=np.int64)
    of_former = numbers + np.searchsorted(places, numbers, side="right")
    of_added = np.array([bisect_left(merged, name) for name in added], np.int64)
    return merged, of_former, of_added


def _blocks(column: pa.ChunkedArray) -> Blocks:
    lists = column.combine_chunks()
    counts = np.asarray(pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False), np.int64)
    blocks = lists.flatten()
    cube, cube_ids = numbered_column(blocks.field("cubeId"))

    def field(name: str) -> Integers:
        return np.asarray(blocks.field(name).to_numpy(zero_copy_only=False), np.int64)

    return Blocks(
        file=np.repeat(np.arange(len(lists), dtype=np.int64), counts),
        cube=cube,
        cube_ids=cube_ids,
        min_weight=field("minWeight"),
        max_weight=field("maxWeight"),
        elements=field("elementCount"),
    )
