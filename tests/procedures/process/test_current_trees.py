"""The store of current trees: bounded, and advanced only by the commit that follows directly."""

from itertools import product

from otree.block import Block
from otree.cube import CubeId
from otree.tree import CubeState
from otree.weight import MAX_WEIGHT, fraction_of
from procedures.process.current_trees import CurrentTree, CurrentTrees

TREE, OTHER = CurrentTree.of(1, {}), CurrentTree.of(2, {})


def test_the_next_commit_advances_the_tree():
    trees = CurrentTrees(4)
    trees.expect("w", ("t", 3, 1), TREE)
    assert trees.get(("t", 4, 1)) is None
    trees.committed("w", 4)
    assert trees.get(("t", 4, 1)) is TREE


def test_a_commit_in_between_keeps_nothing():
    trees = CurrentTrees(4)
    trees.expect("w", ("t", 3, 1), TREE)
    trees.expect("v", ("t", 3, 1), OTHER)
    trees.committed("v", 4)
    trees.committed("w", 5)
    assert trees.get(("t", 4, 1)) is OTHER
    assert trees.get(("t", 5, 1)) is None
    trees.committed("unknown", 6)
    assert trees.get(("t", 6, 1)) is None


def test_the_longest_unused_goes_first():
    trees = CurrentTrees(2)
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


def test_appends_of_few_rows_grow_the_tree():
    """No append knows its rows when it begins: the rows of those before it say where the tree grows."""
    root = CubeId.root(1)
    current = CurrentTree.of(1, {root: CubeState(MAX_WEIGHT, 900)})
    for _ in range(250):
        current = current.grown(1000)
        current = current.after([Block("", 0, current.tree.threshold(root), 2)], current.tree)
    assert current.states[root].element_count == 1400
    # Above 1,250 rows the root takes fewer of those that follow; it looks again every 50 rows.
    assert 0.75 < fraction_of(current.tree.threshold(root)) < 0.8
    assert current.states[root].max_weight == current.tree.threshold(root)


def test_cubes_are_not_looked_through_for_every_row():
    current = CurrentTree.of(1, {CubeId.root(1): CubeState(MAX_WEIGHT, 3000)}).grown(1000)
    after = current.after([Block("", 0, MAX_WEIGHT, 49)], current.tree)
    assert after.grown(1000) is after
    after = after.after([Block("", 0, MAX_WEIGHT, 1)], current.tree)
    assert after.grown(1000) is not after


def test_one_tree_of_a_table_is_kept():
    trees = CurrentTrees(4)
    trees.put(("t", 3, 1), TREE)
    trees.put(("t", 4, 1), OTHER)
    # A statement on an older version comes late.
    trees.put(("t", 2, 1), TREE)
    assert [trees.get(("t", version, 1)) for version in (2, 3, 4)] == [None, None, OTHER]
    trees.put(("t", 4, 2), TREE)
    assert trees.get(("t", 4, 1)) is OTHER


def test_the_cubes_of_all_trees_are_bounded():
    large = CurrentTree.of(1, {CubeId(1, path): CubeState(MAX_WEIGHT, 1) for path in product((0, 1), repeat=3)})
    trees = CurrentTrees(4, most_cubes=20)
    for name in "abc":
        trees.put((name, 1, 1), large)
        trees.expect(name, (name, 1, 1), large)
    assert [trees.get((name, 1, 1)) for name in "abc"] == [None, large, large]
    for name in "abc":
        trees.committed(name, 2)
    assert trees.get(("a", 2, 1)) is None
    trees = CurrentTrees(4, most_cubes=5)
    trees.put(("a", 1, 1), large)
    assert trees.get(("a", 1, 1)) is large
