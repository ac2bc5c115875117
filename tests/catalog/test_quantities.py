"""Quantities with units."""

import pytest

from catalog.quantities import duration_text, share_text, size_text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (999_960, "1.0 MB"),
        (1_540_000, "1.5 MB"),
        (2.5e15, "2.5 PB"),
        (1e19, "10000.0 PB"),
    ],
)
def test_sizes(size, text):
    assert size_text(size) == text


def test_shares():
    assert [share_text(0.125), share_text(0.1, 0), share_text(1.0, 0)] == ["12.5 %", "10 %", "100 %"]


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(0, "0 ms"), (999, "999 ms"), (1500, "1.5 s"), (125_000, "2 min 5 s"), (3_660_000, "1 h 1 min")],
)
def test_durations(milliseconds, text):
    assert duration_text(milliseconds) == text
