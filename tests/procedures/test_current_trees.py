"""The store of current trees: bounded, and advanced only by the commit that follows directly."""

from otree.tree import Tree
from procedures.layout.current_trees import CurrentTrees

TREE, OTHER = Tree(1, {}), Tree(2, {})


def test_the_next_commit_advances_the_tree():
    trees = CurrentTrees(limit=4)
    trees.expect("w", ("t", 3, 1), TREE)
    assert trees.get(("t", 4, 1)) is None
    trees.committed("w", 4)
    assert trees.get(("t", 4, 1)) is TREE


def test_a_commit_in_between_keeps_nothing():
    trees = CurrentTrees(limit=4)
    trees.expect("w", ("t", 3, 1), TREE)
    trees.expect("v", ("t", 3, 1), OTHER)
    trees.committed("v", 4)
    trees.committed("w", 5)
    assert trees.get(("t", 4, 1)) is OTHER
    assert trees.get(("t", 5, 1)) is None
    trees.committed("unknown", 6)
    assert trees.get(("t", 6, 1)) is None


def test_the_longest_unused_goes_first():
    trees = CurrentTrees(limit=2)
    trees.put(("a", 1, 1), TREE)
    trees.put(("b", 1, 1), TREE)
    assert trees.get(("a", 1, 1)) is TREE
    trees.put(("c", 1, 1), TREE)
    assert trees.get(("b", 1, 1)) is None
    assert trees.get(("a", 1, 1)) is TREE
    for i in range(5):
        trees.expect(f"w{i}", ("t", i, 1), TREE)
    trees.committed("w0", 1)
    assert trees.get(("t", 1, 1)) is None
