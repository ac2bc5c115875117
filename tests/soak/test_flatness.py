"""The rule that decides whether a soak leaks finds leaks, and is not misled by noise and clean-ups."""

import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from soak.flatness import LEAST_SAMPLES, Allowance, slope, trend
from soak.resources import bytes_without_pages

HOUR = 120  # samples every 30 seconds
FREE = Allowance(constant=0)


def grows(samples, allowance=FREE):
    return trend(samples, allowance).grows


def test_a_constant_is_flat_and_its_numbers_are_its_value():
    found = trend([50.0] * HOUR, FREE)
    assert (found.first, found.middle, found.last, found.slope, found.allowed) == (50, 50, 50, 0, 5)
    assert not found.grows


def test_growth_in_the_first_third_is_the_warm_up():
    assert not grows([min(n, HOUR // 3) for n in range(HOUR)])


@pytest.mark.parametrize("seed", range(5))
def test_a_leak_is_found_beneath_noise(seed):
    chance = random.Random(seed)
    # A quarter of the level per third.
    assert grows([100 + 25 * n / (HOUR / 3) + chance.gauss(0, 10) for n in range(HOUR)])


@pytest.mark.parametrize("seed", range(5))
def test_noise_is_no_leak(seed):
    chance = random.Random(seed)
    assert not grows([100 + chance.gauss(0, 10) for _ in range(HOUR)])


@pytest.mark.parametrize("period", [5, 7, 13, 20, 29])
def test_a_saw_tooth_is_flat(period):
    assert not grows([10 + n % period for n in range(HOUR)])


def test_a_leak_below_a_saw_tooth_is_found():
    assert grows([100 + n % 7 + n for n in range(HOUR)])


def test_a_single_step_late_in_the_run_is_found():
    assert grows([100] * 80 + [200] * 40)


def test_a_peak_is_no_leak():
    assert not grows([100] * 90 + [500] * 10 + [100] * 20)


def test_the_constant_allows_growth_of_small_numbers():
    samples = [3] * 80 + [6] * 40
    assert grows(samples)
    assert not grows(samples, Allowance(constant=5))


def test_shrinking_is_flat():
    assert not grows(list(range(HOUR, 0, -1)))


def test_too_few_samples_are_refused():
    assert not grows([1] * LEAST_SAMPLES)
    with pytest.raises(ValueError, match="at least 9"):
        trend([1] * (LEAST_SAMPLES - 1), FREE)


def test_the_slope_is_per_sample():
    assert slope([0, 2, 4, 6, 100]) == 2


def test_the_heap_is_measured_without_pages_of_rows():
    histogram = """ num     #instances         #bytes  class name (module)
-------------------------------------------------------
   1:            58            700  [J (java.base@17.0.15)
   2:           240            200  [B (java.base@17.0.15)
   3:             1            100  [[J (java.base@17.0.15)
Total           299           1000
"""
    assert bytes_without_pages(histogram) == 300
