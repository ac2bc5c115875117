"""Order of a rewrite: the place of a point on the Hilbert curve over the quantiles of its values."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Finer codes would order the rows of one page only, and their tables would not fit a processor's cache.
_BITS_OF_ONE = 16
_BITS_OF_SEVERAL = 11
# The key has to fit a long.
_KEY_BITS = 60
# A part of the codes follows the rows alone, so that rows that are close together in their table get different codes.
_OWN_SHARE = 1 / 32


def bits_per_dimension(dimensions: int) -> int:
    """Return how many bits of each column's code go into the key."""
    most = _BITS_OF_ONE if dimensions == 1 else _BITS_OF_SEVERAL
    return max(1, min(most, _KEY_BITS // dimensions))


@dataclass(frozen=True, eq=False)
class RowsBeside:
    """The rows of a table other than those that are ordered.

    Attributes:
        share: how many of all rows they are, in [0, 1).
        below: returns the share of them below each of some values.
    """

    share: float
    below: Callable[[NDArray[Any]], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Ranks:
    """Codes of a column's values that follow their order and are spread evenly over the rows.

    A value's bucket is the number of boundaries not above it; its code is the middle of its bucket's rows. So a column
    of ten values spreads over all codes as one of a million does, and both take part in every bit of the curve.

    Attributes:
        boundaries: distinct values, ascending: doubles, or bytes in unsigned order.
        codes: one per bucket, (boundaries + 1) in all, never descending.
    """

    boundaries: NDArray[Any]
    codes: NDArray[np.int32]

    @classmethod
    def of_sample(cls, values: NDArray[Any], bits: int, beside: RowsBeside | None = None) -> Ranks:
        """Choose the boundaries by a sample.

        Where the rows join others, codes follow the quantiles of all rows together. So the rows of one day spread over
        as much of a column of times as the day has of the table, and files and pages get the shape that those of the
        whole table have, which is narrower in the other columns.

        Args:
            values: non-null values, doubles or bytes objects, in any order.
            bits: codes are below 2**bits.
            beside: the other rows of the table; None = there are none.

        Returns:
            The ranks; of an empty sample, one bucket for all values.
        """
        ordered = np.sort(values)
        size = len(ordered)
        if size == 0:
            return cls(ordered, np.zeros(1, np.int32))
        steps = min(size, (1 << bits) - 1)
        boundaries = np.unique(ordered[np.arange(steps) * size // steps])
        starts = np.concatenate(([0], np.searchsorted(ordered, boundaries, side="left"), [size]))
        middles = (starts[:-1] + starts[1:]) / 2.0 / size
        if beside is not None:
            ends = beside.below(np.concatenate((boundaries[:1], boundaries, ordered[-1:])))
            own = _OWN_SHARE + (1 - _OWN_SHARE) * (1 - beside.share)
            middles = own * middles + (1 - own) * (ends[:-1] + ends[1:]) / 2.0
        codes = np.minimum(middles * (1 << bits), (1 << bits) - 1).astype(np.int32)
        return cls(boundaries, codes)

    @property
    def of_doubles(self) -> bool:
        """Whether the values are doubles, not bytes."""
        return self.boundaries.dtype.kind == "f"

    def codes_of(self, values: NDArray[Any]) -> NDArray[np.int32]:
        """Return the codes of non-null values."""
        return np.asarray(self.codes[np.searchsorted(self.boundaries, values, side="right")], np.int32)

    def packed(self) -> bytes:
        """Return the table as the row-level expression reads it (big-endian)."""
        size = len(self.boundaries)
        codes = self.codes.astype(">i4").tobytes()
        if self.of_doubles:
            return struct.pack(">i", size) + self.boundaries.astype(">f8").tobytes() + codes
        texts = b"".join(struct.pack(">i", len(text)) + text for text in self.boundaries)
        return struct.pack(">i", size) + texts + codes


def hilbert_keys(codes: Sequence[NDArray[np.int32]], bits: int) -> NDArray[np.int64]:
    """Return the places of points on the Hilbert curve.

    Args:
        codes: per dimension the codes of all points, each below 2**bits.
        bits: bits per dimension; dimensions * bits is at most 62.

    Returns:
        One key per point. Points of neighbouring keys are neighbours in space.

    Source:
        John Skilling, "Programming the Hilbert curve", AIP Conference Proceedings 707 (2004).
    """
    point = [np.array(axis, np.int64) for axis in codes]
    one = np.int64(1)
    for bit in range(bits - 1, 0, -1):
        lower = (one << bit) - 1
        for axis in range(len(point)):
            inverted = (point[axis] >> bit) & 1 == 1
            swapped = np.where(inverted, 0, (point[0] ^ point[axis]) & lower)
            point[0] ^= np.where(inverted, lower, swapped)
            if axis:
                point[axis] ^= swapped
    for axis in range(1, len(point)):
        point[axis] ^= point[axis - 1]
    flips = np.zeros_like(point[0])
    for bit in range(bits - 1, 0, -1):
        flips ^= np.where((point[-1] >> bit) & 1 == 1, (one << bit) - 1, 0)
    return interleaved([axis ^ flips for axis in point], bits)


def interleaved(codes: Sequence[NDArray[np.int64]], bits: int) -> NDArray[np.int64]:
    """Return keys of the codes' bits in turn, highest first, the first dimension before the others: the z-order."""
    key = np.zeros(len(codes[0]), np.int64)
    for bit in range(bits - 1, -1, -1):
        for axis in codes:
            key = (key << 1) | ((axis.astype(np.int64) >> bit) & 1)
    return key
