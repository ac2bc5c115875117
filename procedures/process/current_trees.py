"""The current trees of table versions, kept in the driver: small appends ask for little else."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

from otree.block import Block
from otree.cube import CubeId
from otree.cube_map import CubeMap
from otree.growth import grow, no_rows
from otree.tree import CubeState, Tree
from otree.weight import MAX_WEIGHT

Key = tuple[str, int, int]
"""Table, version and revision."""

# Rows that may be appended, as a share of a cube, before an append looks again for cubes that have become too large.
_UNCHECKED_SHARE = 0.05
# They take about 130 MB of the driver's Python process, and trees that wait for their commit as much again.
MOST_CUBES = 500_000


@dataclass(frozen=True)
class CurrentTree:
    """The tree of one revision in one version of a table.

    Attributes:
        tree: thresholds of its cubes.
        states: live cubes.
        unchecked: rows appended since the tree was last grown.
        has_grown: whether the tree differs from the one that the states describe, as it has grown for the next append.
    """

    tree: Tree
    states: CubeMap[CubeState]
    unchecked: float = float("inf")
    has_grown: bool = False

    @classmethod
    def of(cls, dimensions: int, states: Mapping[CubeId, CubeState]) -> CurrentTree:
        """The tree that live blocks describe."""
        live = CubeMap.of(dimensions, states)
        return cls(Tree.current(dimensions, live), live)

    def grown(self, desired: int) -> CurrentTree:
        """The tree for an append whose rows are not known: cubes that hold too many rows take fewer, or are split.

        Args:
            desired: rows that an inner cube should hold.
        """
        if self.unchecked < _UNCHECKED_SHARE * desired:
            return self
        tree = grow(self.tree, self.states, no_rows(self.tree.dimensions), desired, everywhere=True)
        if tree.inner.by_text == self.tree.inner.by_text:
            return replace(self, unchecked=0)
        return CurrentTree(tree, self.states, 0, has_grown=True)

    def after(self, blocks: Iterable[Block], tree: Tree) -> CurrentTree:
        """The tree after an append.

        Args:
            blocks: the blocks of its files.
            tree: thresholds by which it wrote.
        """
        by_text = dict(self.states.by_text)
        rows = 0
        for block in blocks:
            state = by_text.get(block.cube_id, CubeState(MAX_WEIGHT, 0))
            count = state.element_count + block.element_count
            by_text[block.cube_id] = CubeState(min(state.max_weight, block.max_weight), count)
            rows += block.element_count
        states = CubeMap(tree.dimensions, by_text)
        if tree is not self.tree or self.has_grown:
            # The tree has grown: a cube without blocks follows its parent's threshold, as for every other reader.
            tree = Tree.current(tree.dimensions, states)
        return CurrentTree(tree, states, self.unchecked + rows)


class CurrentTrees:
    """A bounded store of trees, the longest unused dropped first. Of each table and revision it keeps the newest tree.

    Args:
        most_trees: trees kept.
        most_cubes: cubes of the trees kept together, but for one tree that may be larger.
    """

    def __init__(self, most_trees: int, most_cubes: int = MOST_CUBES) -> None:
        self._most_trees = most_trees
        self._most_cubes = most_cubes
        self._trees: OrderedDict[tuple[str, int], tuple[int, CurrentTree]] = OrderedDict()
        self._expected: OrderedDict[str, tuple[Key, CurrentTree]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Key) -> CurrentTree | None:
        """Returns the tree of a version, None when it is not kept."""
        table, wanted, revision = key
        with self._lock:
            version, tree = self._trees.get((table, revision), (None, None))
            if version != wanted:
                return None
            self._trees.move_to_end((table, revision))
            return tree

    def put(self, key: Key, tree: CurrentTree) -> None:
        """Keeps a tree, unless there is one of a later version."""
        table, version, revision = key
        with self._lock:
            newest, _ = self._trees.get((table, revision), (version, None))
            if version >= newest:
                self._trees[table, revision] = (version, tree)
                self._trees.move_to_end((table, revision))
                self._drop_oldest(self._trees)

    def expect(self, write_id: str, key: Key, tree: CurrentTree) -> None:
        """Notes the tree that an append on top of a version leaves, should its commit be the next one.

        Args:
            write_id: id of the append.
            key: the version that it has read, and the revision that it wrote to.
            tree: the tree after it.
        """
        with self._lock:
            self._expected[write_id] = (key, tree)
            self._drop_oldest(self._expected)

    def committed(self, write_id: str, version: int) -> None:
        """Keeps what was expected of an append when no other commit came between.

        Args:
            write_id: id of the append.
            version: version that it made.
        """
        with self._lock:
            expected = self._expected.pop(write_id, None)
        if expected is not None:
            (table, read, revision), tree = expected
            if version == read + 1:
                self.put((table, version, revision), tree)

    def _drop_oldest(self, kept: OrderedDict[Any, tuple[Any, CurrentTree]]) -> None:
        while len(kept) > 1 and (
            len(kept) > self._most_trees or sum(len(tree.states) for _, tree in kept.values()) > self._most_cubes
        ):
            kept.popitem(last=False)
