"""The current trees of table versions, kept in the driver: small appends ask for little else."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from threading import Lock

from otree.block import Block
from otree.cube import CubeId
from otree.growth import grow, no_rows
from otree.tree import CubeState, Tree
from otree.weight import MAX_WEIGHT

Key = tuple[str, int, int]
"""Table, version and revision."""

# Rows that may be appended, as a share of a cube, before an append looks again for cubes that have become too large.
_UNCHECKED_SHARE = 0.05


@dataclass(frozen=True)
class CurrentTree:
    """The tree of one revision in one version of a table.

    Attributes:
        tree: thresholds of its cubes.
        states: live cubes.
        unchecked: rows appended since the tree was last grown.
    """

    tree: Tree
    states: Mapping[CubeId, CubeState]
    unchecked: float = float("inf")

    @classmethod
    def of(cls, dimensions: int, states: Mapping[CubeId, CubeState]) -> CurrentTree:
        """The tree that live blocks describe."""
        return cls(Tree.current(dimensions, states), states)

    def grown(self, desired: int) -> CurrentTree:
        """The tree for an append whose rows are not known: cubes that hold too many rows take fewer, or are split.

        Args:
            desired: rows that an inner cube should hold.
        """
        if self.unchecked < _UNCHECKED_SHARE * desired:
            return self
        joining = no_rows(self.tree.dimensions)
        return CurrentTree(grow(self.tree, self.states, joining, desired, everywhere=True), self.states, 0)

    def after(self, blocks: Iterable[Block], tree: Tree) -> CurrentTree:
        """The tree after an append.

        Args:
            blocks: the blocks of its files.
            tree: thresholds by which it wrote.
        """
        states = dict(self.states)
        rows = 0
        for block in blocks:
            cube = CubeId.parse(block.cube_id, tree.dimensions)
            state = states.get(cube, CubeState(MAX_WEIGHT, 0))
            count = state.element_count + block.element_count
            states[cube] = CubeState(min(state.max_weight, block.max_weight), count)
            rows += block.element_count
        if tree is not self.tree or not self.unchecked:
            # The tree has grown: a cube without blocks follows its parent's threshold, as for every other reader.
            tree = Tree.current(tree.dimensions, states)
        return CurrentTree(tree, states, self.unchecked + rows)


class CurrentTrees:
    """A bounded store of trees, the longest unused dropped first.

    Args:
        limit: trees kept.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._trees: OrderedDict[Key, CurrentTree] = OrderedDict()
        self._expected: OrderedDict[str, tuple[Key, CurrentTree]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Key) -> CurrentTree | None:
        """Returns the tree of a version, None when it is not kept."""
        with self._lock:
            tree = self._trees.get(key)
            if tree is not None:
                self._trees.move_to_end(key)
            return tree

    def put(self, key: Key, tree: CurrentTree) -> None:
        """Keeps a tree."""
        with self._lock:
            self._trees[key] = tree
            self._trees.move_to_end(key)
            while len(self._trees) > self._limit:
                self._trees.popitem(last=False)

    def expect(self, write_id: str, key: Key, tree: CurrentTree) -> None:
        """Notes the tree that an append on top of a version leaves, should its commit be the next one.

        Args:
            write_id: id of the append.
            key: the version that it has read, and the revision that it wrote to.
            tree: the tree after it.
        """
        with self._lock:
            self._expected[write_id] = (key, tree)
            while len(self._expected) > self._limit:
                self._expected.popitem(last=False)

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
