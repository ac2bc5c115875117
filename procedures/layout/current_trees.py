"""The current trees of table versions, kept in the driver: small appends ask for little else."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from otree.tree import Tree

Key = tuple[str, int, int]
"""Table, version and revision."""


class CurrentTrees:
    """A bounded store of trees, the longest unused dropped first.

    Args:
        limit: trees kept.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._trees: OrderedDict[Key, Tree] = OrderedDict()
        self._expected: OrderedDict[str, tuple[Key, Tree]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Key) -> Tree | None:
        """Returns the tree of a version, None when it is not kept."""
        with self._lock:
            tree = self._trees.get(key)
            if tree is not None:
                self._trees.move_to_end(key)
            return tree

    def put(self, key: Key, tree: Tree) -> None:
        """Keeps a tree."""
        with self._lock:
            self._trees[key] = tree
            self._trees.move_to_end(key)
            while len(self._trees) > self._limit:
                self._trees.popitem(last=False)

    def expect(self, write_id: str, key: Key, tree: Tree) -> None:
        """Notes the tree that an append on top of a version leaves, should its commit be the next one.

        Args:
            write_id: id of the append.
            key: the version that it has read, and the revision that it wrote to.
            tree: thresholds by which it wrote.
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
            found = self._expected.pop(write_id, None)
        if found is not None:
            (table, read, revision), tree = found
            if version == read + 1:
                self.put((table, version, revision), tree)
