"""The tag `blocks`, and levels."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otree.block import Block, blocks_from_json, blocks_to_json
from otree.errors import IndexFormatError
from otree.level import level_of, next_level_elements
from otree.weight import MAX_WEIGHT, MIN_WEIGHT

WEIGHT = st.integers(MIN_WEIGHT, MAX_WEIGHT)
GOOD = {"cubeId": "w", "minWeight": -5, "maxWeight": 7, "elementCount": 3}


@given(st.lists(st.builds(Block, st.text("AQgw"), WEIGHT, WEIGHT, st.integers(0, 2**63 - 1))))
def test_round_trip(blocks: list[Block]) -> None:
    """Blocks are read back, and exactly four fields are written."""
    text = blocks_to_json(blocks)
    assert blocks_from_json(text) == tuple(blocks)
    assert all(list(node) == ["cubeId", "minWeight", "maxWeight", "elementCount"] for node in json.loads(text))


def test_published_tag() -> None:
    """A tag as the format shows it is read and written back identically."""
    text = (
        '[{"cubeId":"ww","minWeight":-1071406827,"maxWeight":2147483647,"elementCount":9316},'
        '{"cubeId":"","minWeight":-1932703670,"maxWeight":-1071450807,"elementCount":9879}]'
    )
    assert blocks_to_json(blocks_from_json(text)) == text


def test_replicated_is_ignored() -> None:
    """The field of older tables does not matter."""
    assert blocks_from_json(json.dumps([{**GOOD, "replicated": False}])) == (Block("w", -5, 7, 3),)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"extra": 1}, "extra"),
        ({"cubeId": 1}, "cubeId"),
        ({"minWeight": -5.0}, "minWeight"),
        ({"maxWeight": 2**31}, "maxWeight"),
        ({"maxWeight": True}, "maxWeight"),
        ({"elementCount": "3"}, "elementCount"),
        ({"elementCount": -1}, "elementCount"),
        ({"elementCount": None}, "elementCount"),
    ],
)
def test_wrong_fields_are_refused(change: dict[str, object], named: str) -> None:
    """The message names the field."""
    with pytest.raises(IndexFormatError, match=named):
        blocks_from_json(json.dumps([{**GOOD, **change}]))


@pytest.mark.parametrize("text", ["", "{}", "[1]", "[{}]", "nope", "[NaN]", '[{"cubeId":"w"}]'])
def test_wrong_texts_are_refused(text: str) -> None:
    """What is no array of blocks is refused."""
    with pytest.raises(IndexFormatError):
        blocks_from_json(text)


@given(st.integers(0, 18))
def test_levels_around_powers_of_ten(power: int) -> None:
    """A power of ten starts a level."""
    assert level_of(10**power) == power
    assert level_of(10**power + 1) == power
    assert level_of(10 ** (power + 1) - 1) == power
    assert level_of(next_level_elements(power)) == power + 1
    assert level_of(next_level_elements(power) - 1) == power


def test_level_of_nothing() -> None:
    """No rows are level 0, fewer are refused."""
    assert level_of(0) == 0
    with pytest.raises(ValueError, match="negative"):
        level_of(-1)
