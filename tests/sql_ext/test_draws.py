"""Fractions and draws that a sample accepts; the same with Spark and without."""

import numpy as np
import pytest

from catalog.errors import InvalidArgumentError
from otree.weight import bounds_of_draw
from sql_ext.draws import checked_bounds


@pytest.mark.parametrize("share", [0.1, np.float64(0.1), np.float32(0.125), 1, np.int64(1)])
@pytest.mark.parametrize("draw", [1, np.int64(1)])
def test_numbers_of_numpy_are_those_of_python(share, draw):
    assert checked_bounds(share, draw) == bounds_of_draw(float(share), 1)


@pytest.mark.parametrize("share", [0, -0.5, 1.5, np.float64("nan"), True, "0.1", None, np.int64(0)])
def test_other_fractions_are_refused(share):
    with pytest.raises(InvalidArgumentError, match=r"fraction = .* is not accepted: a number above 0, up to 1"):
        checked_bounds(share, 1)


@pytest.mark.parametrize("draw", [0, 11, 1.5, True, "1", None, np.int64(11)])
def test_other_draws_are_refused(draw):
    with pytest.raises(InvalidArgumentError, match=r"draw = .* is not accepted: a whole number from 1 to 10 for"):
        checked_bounds(0.1, draw)
