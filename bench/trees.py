"""Trees of large tables without Spark: what an append and a group of an optimization take in the driver.

The table has as many files as cubes, and ten blocks in each file. The append comes after a commit of another writer, so
that its tree is made from the blocks; the next one follows it. The group replaces a hundred files. The tags are made of
the blocks that were noted of a write to each cube.

    python bench/trees.py --cubes 15000 150000 600000
"""

from __future__ import annotations

import argparse
import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TypeVar

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from file_lists import REVISIONS
from file_table import rows_of_files

from catalog.files.file_table import Blocks, FileTable
from catalog.jvm.file_writer import CountedBlock, DataFile
from otree.block import Block
from otree.cube import CubeId
from otree.growth import CELL_BITS, PlacedRows, grow
from otree.tree import Tree
from otree.weight import MAX_WEIGHT, MIN_WEIGHT, weight_of
from procedures.layout.tags import noted_blocks
from procedures.process.current_trees import CurrentTree

_Result = TypeVar("_Result")
DIMENSIONS, BLOCKS_PER_FILE, DESIRED = 2, 10, 1_000_000
# Rows of a group that the driver looks at.
SAMPLED_ROWS = 100_000


def table_of(cubes: int, seed: int = 1) -> FileTable:
    """Files whose blocks are of so many cubes, each with about as many rows as it should have."""
    numbers = np.random.default_rng(seed)
    symbols = [CubeId(DIMENSIONS, (code,)).text for code in range(1 << DIMENSIONS)]
    texts: list[str] = []
    thresholds: list[int] = []
    depth = 0
    while len(texts) < cubes:
        level = ["".join(path) for path in product(symbols, repeat=depth)][: cubes - len(texts)]
        texts += level
        thresholds += [weight_of(1.0 - 0.6 ** (depth + 1))] * len(level)
        depth += 1
    parents = {text[:-1] for text in texts if text}
    order = sorted(range(cubes), key=texts.__getitem__)
    highest = np.array([thresholds[n] if texts[n] in parents else MAX_WEIGHT for n in order], np.int64)
    count = cubes * BLOCKS_PER_FILE
    cube = numbers.permutation(np.arange(count) % cubes)
    blocks = Blocks(
        file=np.arange(count) // BLOCKS_PER_FILE,
        cube=cube,
        cube_ids=tuple(texts[n] for n in order),
        min_weight=np.full(count, MIN_WEIGHT, np.int64),
        max_weight=highest[cube],
        elements=numbers.integers(0, 2 * DESIRED // BLOCKS_PER_FILE, count),
    )
    files = FileTable.of(rows_of_files(cubes, max(cubes // 50, 1)))
    revision = np.full(cubes, REVISIONS[-1].revision_id)
    return replace(files, revision=revision, tagged_revision=revision, blocks=blocks)


def timed(work: Callable[[], _Result]) -> tuple[_Result, float]:
    """The result of a piece of work, and its seconds of CPU time."""
    started = time.process_time()
    result = work()
    return result, time.process_time() - started


def written_to(tree: Tree) -> list[DataFile]:
    """Files with a block of each cube of a tree, in random order."""
    table = tree.ordinals()
    inner = len(table.inner_texts)
    leaves = np.setdiff1d(np.arange(inner << DIMENSIONS), table.child_keys) + inner
    cubes = np.random.default_rng(3).permutation(np.concatenate([np.arange(inner), leaves])).tolist()
    blocks = [CountedBlock(cube, 1000, MIN_WEIGHT, MIN_WEIGHT) for cube in cubes]
    starts = range(0, len(blocks), BLOCKS_PER_FILE)
    return [DataFile("f", 1, None, None, tuple(blocks[n : n + BLOCKS_PER_FILE])) for n in starts]


def measured(cubes: int) -> str:
    """A line with the seconds of an append, of the next one, of a group and of tags, and the bytes of the tree."""
    files, revision = table_of(cubes), REVISIONS[-1]
    replaced = files.path[:100].tolist()
    numbers = np.random.default_rng(2)
    written = [Block(CubeId(DIMENSIONS, (n % 4,)).text, MIN_WEIGHT, MAX_WEIGHT, 1000) for n in range(4)]
    sample = PlacedRows(
        numbers.integers(MIN_WEIGHT, MAX_WEIGHT, SAMPLED_ROWS, np.int32),
        numbers.integers(0, 1 << CELL_BITS, SAMPLED_ROWS, np.int64),
        CELL_BITS // DIMENSIONS,
        100 * DESIRED / SAMPLED_ROWS,
    )

    def append() -> CurrentTree:
        current = CurrentTree.of(DIMENSIONS, files.cube_states(revision)).grown(DESIRED)
        return current.after(written, current.tree)

    def group() -> Tree:
        current = Tree.current(DIMENSIONS, files.cube_states(revision))
        tree = grow(current, files.cube_states(revision, replaced), sample, DESIRED)
        tree.ordinals()
        return tree

    append()
    tree, first = timed(append)
    _, again = timed(lambda: tree.grown(DESIRED).after(written, tree.tree))
    grown, of_group = timed(group)
    noted = written_to(grown)
    _, of_tags = timed(lambda: noted_blocks(noted, grown))
    tracemalloc.start()
    kept = append()
    kept_bytes = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return f"{len(kept.states):9,d} {first:8.2f} {again:8.2f} {of_group:8.2f} {of_tags:8.2f} {kept_bytes / 1e6:8.0f}"


def main() -> None:
    """Prints a line per size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cubes", type=int, nargs="+", default=[15_000, 150_000, 600_000])
    print(f"{'cubes':>9s} {'append':>8s} {'next':>8s} {'group':>8s} {'tags':>8s} {'MB kept':>8s}   seconds of CPU time")
    for cubes in parser.parse_args().cubes:
        print(measured(cubes), flush=True)


if __name__ == "__main__":
    main()
