"""Columns of files as arrays: from Arrow, in groups, and as numbers in place of strings."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

# Stands for an unknown number of rows, and for the end of a band that is not known.
UNKNOWN = int(np.iinfo(np.int64).min)
_POWERS_OF_TEN = 10 ** np.arange(19, dtype=np.int64)

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def group_numbers(*keys: Integers) -> tuple[Integers, int]:
    """Numbers the distinct combinations of keys, in their order.

    Args:
        keys: the most significant one first, all of one length.

    Returns:
        The number of each entry's combination, and how many combinations there are.
    """
    count = len(keys[0])
    if count == 0:
        return np.zeros(0, np.int64), 0
    order = np.lexsort(keys[::-1])
    is_first = np.zeros(count, np.bool_)
    is_first[0] = True
    for key in keys:
        ordered = key[order]
        is_first[1:] |= ordered[1:] != ordered[:-1]
    numbers = np.empty(count, np.int64)
    numbers[order] = np.cumsum(is_first) - 1
    return numbers, int(is_first.sum())


def sums(group: Integers, groups: int, values: Integers) -> Integers:
    """The sum of the values of each group, in exact integer arithmetic.

    Args:
        group: number of the group of each value.
        groups: how many groups there are.
        values: the values.
    """
    total = np.zeros(groups, np.int64)
    np.add.at(total, group, values)
    return total


def digits(counts: Integers) -> Integers:
    """The number of decimal digits of each count; 0 for 0. Exact, as a logarithm is not."""
    return np.searchsorted(_POWERS_OF_TEN, counts, side="right").astype(np.int64)


def strings(column: pa.ChunkedArray) -> NDArray[np.object_]:
    """Strings, each of which is an object."""
    values = np.empty(len(column), np.object_)
    values[:] = column.to_pylist()
    return values


def numbered(values: NDArray[np.object_]) -> tuple[Integers, tuple[str, ...]]:
    """Numbers the distinct strings in their order.

    Returns:
        The number of each entry, and the strings.
    """
    return numbered_column(pa.array(values, pa.string()))


def interned(column: pa.ChunkedArray) -> NDArray[np.object_]:
    """Strings of which many are equal; equal ones are one object."""
    numbers, distinct = numbered_column(column.combine_chunks())
    return np.array(distinct, np.object_)[numbers] if distinct else np.empty(0, np.object_)


def integers(column: pa.ChunkedArray) -> Integers:
    """Whole numbers, ``UNKNOWN`` for null."""
    return np.asarray(pc.fill_null(column.cast(pa.int64()), UNKNOWN).to_numpy(), np.int64)


def flags(column: pa.ChunkedArray) -> Flags:
    """Booleans, False for null."""
    return np.asarray(pc.fill_null(column, False).to_numpy(), np.bool_)


def vectors(column: pa.ChunkedArray, width: int) -> Floats:
    """Lists of numbers as rows of an array, NaN for null.

    Args:
        column: the lists.
        width: length of each.
    """
    values = column.combine_chunks().flatten()
    numbers = np.asarray(pc.fill_null(values, np.nan).to_numpy(zero_copy_only=False), np.float64)
    return numbers.reshape(len(column), width)


def numbered_column(column: pa.Array) -> tuple[Integers, tuple[str, ...]]:
    """Numbers the distinct strings in their order; returns the number of each entry, and the strings."""
    distinct = pc.unique(column)
    distinct = distinct.take(pc.sort_indices(distinct))
    numbers = pc.index_in(column, value_set=distinct)
    return np.asarray(numbers.to_numpy(zero_copy_only=False), np.int64), tuple(distinct.to_pylist())
