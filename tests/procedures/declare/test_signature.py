"""Signatures of procedures: ranges, words, and what they share with the declaration."""

import math
from decimal import Decimal

import numpy as np
import pytest

from catalog.errors import InvalidArgumentError, UnknownNameError
from procedures.declare.signature import Parameter, Signature


@pytest.mark.parametrize(
    ("parameter", "accepted", "refused", "text"),
    [
        (Parameter("n", "INT", "N.", least=1), [1, 5], [0, -1], "a whole number of at least 1"),
        (Parameter("n", "INT", "N.", least=2, most=9_000), [2, 9_000], [1, 9_001], "a whole number from 2 to 9,000"),
        (Parameter("x", "DOUBLE", "X.", least=0.5, most=0.9), [0.5, 0.9], [0.4, math.nan], "a number from 0.5 to 0.9"),
        (Parameter("w", "STRING", "W.", choices=("a", "b")), ["a"], ["c", "A"], "one of a, b"),
    ],
    ids=["least", "range", "share", "words"],
)
def test_ranges_and_words(parameter, accepted, refused, text):
    for value in accepted:
        assert parameter.check(value) == value
    for value in refused:
        with pytest.raises(InvalidArgumentError, match=f"{parameter.name} = .* is not accepted: {text}"):
            parameter.check(value)


@pytest.mark.parametrize("value", [Decimal("NaN"), Decimal("sNaN"), 10**400])
def test_numbers_that_no_double_is(value):
    with pytest.raises(InvalidArgumentError, match=r"x = .* is not accepted"):
        Parameter("x", "DOUBLE", "X.", least=0.5, most=0.9).check(value)


def test_whole_numbers_of_numpy_are_those_of_python():
    """They come from a row of pandas."""
    number = Parameter("n", "INT", "N.", least=1).check(np.int64(5))
    numbers = Parameter("v", "ARRAY<BIGINT>", "V.").check([np.int32(1), 2])
    assert (number, numbers) == (5, [1, 2])
    assert {type(n) for n in [number, *numbers]} == {int}
    with pytest.raises(InvalidArgumentError, match="n = 0 is not accepted: a whole number of at least 1"):
        Parameter("n", "INT", "N.", least=1).check(np.int64(0))


def test_a_default_may_be_out_of_range():
    assert Parameter("n", "INT", "N.", None, least=1).check(None) is None


def test_arguments_of_a_call():
    signature = Signature("p", "Does it.", (Parameter("a", "INT", "A."), Parameter("b", "STRING", "B.", "x")))
    assert signature.checked({"a": 1}) == {"a": 1, "b": "x"}
    assert signature.signature == "use.p(a INT, b STRING = 'x')"
    with pytest.raises(UnknownNameError, match="Did you mean b"):
        signature.checked({"a": 1, "bb": "y"})
    with pytest.raises(InvalidArgumentError, match="a is missing"):
        signature.checked({})
