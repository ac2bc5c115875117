"""The tree: current state, ordinals."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otree.cube import CubeId
from otree.tree import CubeState, Tree
from otree.weight import MAX_WEIGHT, MIN_WEIGHT


def test_current_with_missing_cubes() -> None:
    """A missing cube takes nothing and stays walkable; what lies below a leaf is left out."""
    child, grandchild = CubeId(2, (1,)), CubeId(2, (1, 2))
    root = CubeId.root(2)
    no_root = Tree.current(2, {grandchild: CubeState(50, 10)})
    assert dict(no_root.thresholds) == {root: MIN_WEIGHT, child: MIN_WEIGHT, grandchild: 50}
    missing = Tree.current(2, {root: CubeState(-9, 1), grandchild: CubeState(MAX_WEIGHT, 1)})
    assert dict(missing.thresholds) == {root: -9, child: -9}
    point = (0.3, 0.9)
    assert grandchild.parent == CubeId.of_point(point, 1)
    assert missing.cube_of(point, -9) == root
    assert missing.cube_of(point, -8).depth == 2
    leaf = Tree.current(2, {root: CubeState(3, 1), child: CubeState(MAX_WEIGHT, 1), grandchild: CubeState(50, 1)})
    assert dict(leaf.thresholds) == {root: 3}
    assert Tree.current(2, {}).thresholds == {}


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Draw a small tree with rising thresholds."""
    dimensions = draw(st.integers(1, 3))
    thresholds: dict[CubeId, int] = {}
    frontier = [(CubeId.root(dimensions), MIN_WEIGHT)]
    for _ in range(draw(st.integers(0, 12))):
        cube, above = frontier.pop(draw(st.integers(0, len(frontier) - 1)))
        thresholds[cube] = draw(st.integers(above, MAX_WEIGHT - 1))
        frontier += [(cube.child(code), thresholds[cube]) for code in range(1 << dimensions)]
    return Tree(dimensions, thresholds)


@given(trees(), st.lists(st.tuples(*[st.floats(0.0, 1.0)] * 3, st.integers(MIN_WEIGHT, MAX_WEIGHT)), min_size=1))
def test_ordinals_agree_with_the_tree(tree: Tree, drawn: list[tuple[float, float, float, int]]) -> None:
    """A walk over the tables ends at the ordinal of the tree's cube, whose weights hold the weight."""
    table = tree.ordinals()
    inner_children = dict(zip(table.child_keys, table.child_nodes, strict=True))
    assert [CubeId.parse(text, tree.dimensions) for text in table.inner_texts] == sorted(tree.thresholds)
    assert table.child_keys == sorted(set(table.child_keys))
    assert sorted(table.child_nodes) == list(range(1, len(table.inner_texts)))
    for *point, weight in drawn:
        coordinates = point[: tree.dimensions]
        cube = tree.cube_of(coordinates, weight)
        assert CubeId.of_point(coordinates, cube.depth) == cube
        assert all(tree.threshold(above) < weight for above in cube.ancestors())
        assert weight <= tree.threshold(cube)
        codes = iter(CubeId.of_point(coordinates, 15).path)
        node = 0
        while node < len(table.inner_texts) and weight > table.thresholds[node]:
            key = node << tree.dimensions | next(codes)
            node = inner_children.get(key, len(table.inner_texts) + key)
        assert table.cube(node) == (cube.text, tree.threshold(cube))


@given(trees())
def test_every_cube_has_an_ordinal(tree: Tree) -> None:
    """Inner cubes and their leaf children all have an ordinal of their own; other numbers are none."""
    table, children = tree.ordinals(), range(1 << tree.dimensions)
    cubes = {*tree.thresholds, *(cube.child(code) for cube in tree.thresholds for code in children)}
    found = []
    for ordinal in range(-1, len(table.inner_texts) * (1 + len(children)) + 2):
        with suppress(KeyError):
            found.append(table.cube(ordinal))
    expected = [(cube.text, tree.threshold(cube)) for cube in cubes or {CubeId.root(tree.dimensions)}]
    assert sorted(found) == sorted(expected)


def test_refusals() -> None:
    """Trees that cannot be walked are refused."""
    root, child = CubeId.root(1), CubeId(1, (1,))
    for thresholds, named in (
        ({child: 3}, "below a leaf"),
        ({root: MAX_WEIGHT}, "threshold"),
        ({CubeId.root(2): 3}, "dim"),
    ):
        with pytest.raises(ValueError, match=named):
            Tree(1, thresholds)
