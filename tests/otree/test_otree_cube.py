"""Cube ids: spelling, geometry, order."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otree.cube import CubeId
from otree.errors import IndexFormatError

COORDINATE = st.floats(0.0, 1.0) | st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.0 - 2**-53])


@st.composite
def cubes(draw: st.DrawFn) -> CubeId:
    """Draw a cube of 1 to 13 dimensions and up to 7 levels."""
    dimensions = draw(st.integers(1, 13))
    return CubeId(dimensions, tuple(draw(st.lists(st.integers(0, 2**dimensions - 1), max_size=7))))


@given(cubes())
def test_text_round_trip(cube: CubeId) -> None:
    """The spelling is read back, and has ceil(d / 6) symbols per level."""
    assert CubeId.parse(cube.text, cube.dimensions) == cube
    assert len(cube.text) == cube.depth * -(-cube.dimensions // 6)


@given(cubes())
def test_digits_of_a_cell_are_the_codes(cube: CubeId) -> None:
    """The base-2^d digits of the cell number are the codes, the first level highest."""
    base = 2**cube.dimensions
    assert tuple(cube.cell // base**level % base for level in reversed(range(cube.depth))) == cube.path
    assert 0 <= cube.cell < base**cube.depth


def test_published_spellings() -> None:
    """The format's own examples."""
    assert [CubeId(2, (code,)).text for code in range(4)] == list("AQgw")
    assert [CubeId(3, (code,)).text for code in range(8)] == list("AIQYgow4")
    assert CubeId.root(5).text == ""
    assert CubeId(2, (3, 3)).text == "ww"
    assert CubeId(6, (63, 62)).text == "/+"
    # Eleven dimensions: six bits, then five with an unused low bit.
    assert CubeId(11, (0b100000_00001,)).text == "gC"
    assert CubeId.parse("gC", 11).path == (0b100000_00001,)
    assert CubeId(1, (1, 0)).text == "gA"


def test_first_dimension_is_the_highest_bit() -> None:
    """A point high in dimension 0 only has the upper bit of the code set."""
    assert CubeId.of_point((0.9, 0.1), 1).path == (0b10,)
    assert CubeId.of_point((0.5, 0.499), 2).path == (0b10, 0b01)
    assert CubeId.of_point((1.0, 0.0), 60).path == (0b10,) * 60


@given(st.lists(COORDINATE, min_size=1, max_size=13), st.integers(0, 40))
def test_point_lies_in_its_cube(coordinates: list[float], depth: int) -> None:
    """The box of the cube contains the point, and the cubes above it are those of the point, too."""
    cube = CubeId.of_point(coordinates, depth)
    for value, (start, end) in zip(coordinates, cube.box(), strict=True):
        assert start <= value < end or value == end == 1.0
    for above in cube.ancestors():
        assert CubeId.of_point(coordinates, above.depth) == above


@given(cubes())
def test_family(cube: CubeId) -> None:
    """Parents, children and ancestors agree, and the order is pre-order."""
    ancestors = list(cube.ancestors())
    assert len(ancestors) == cube.depth
    assert (ancestors[-1] if ancestors else None) == cube.parent
    for code in {0, 2**cube.dimensions - 1}:
        child = cube.child(code)
        assert child.parent == cube
        assert cube < child
    assert cube.child(0).child(1) < cube.child(1)
    assert sorted([cube, *ancestors]) == [*ancestors, cube]


@pytest.mark.parametrize(("text", "dimensions"), [("B", 2), ("A", 7), ("-", 3), ("AQ=", 2), ("gB", 11)])
def test_wrong_spellings_are_refused(text: str, dimensions: int) -> None:
    """Unused bits, cut-off levels and foreign symbols are named."""
    with pytest.raises(IndexFormatError, match="cubeId"):
        CubeId.parse(text, dimensions)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: CubeId(2, (4,)), "code"),
        (lambda: CubeId(0), "dimension"),
        (lambda: CubeId.of_point((1.1,), 1), "1.1"),
        (lambda: CubeId.of_point((float("nan"),), 1), "nan"),
    ],
)
def test_impossible_cubes_are_refused(make: Callable[[], CubeId], named: str) -> None:
    """Codes and points out of range are no cubes."""
    with pytest.raises(ValueError, match=named):
        make()
