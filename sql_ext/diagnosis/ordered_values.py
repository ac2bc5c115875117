"""Values of columns as doubles or bytes in their own order, by which ranges are compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
_ORDERED = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_date,
    pa.types.is_timestamp,
    pa.types.is_string,
    pa.types.is_large_string,
)


def has_order(kind: pa.DataType) -> bool:
    """Returns whether files have ranges of values of a type."""
    return any(test(kind) for test in _ORDERED)


def ordered_values(array: pa.Array | pa.ChunkedArray) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Returns the values as doubles (numbers, days, microseconds) or bytes (strings), and which of them are null.

    Args:
        array: values of a type that ``has_order`` accepts; dictionaries of them, and booleans, are accepted too.

    Returns:
        The values, any value where it is null; whether it is null.
    """
    values = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    nulls = ~np.asarray(values.is_valid().to_numpy(zero_copy_only=False), bool)
    kind = values.type
    if any(test(kind) for test in _TEXTS):
        binary = pc.fill_null(values.cast(pa.large_binary()), b"")
        return binary.to_numpy(zero_copy_only=False).astype(object), nulls
    if pa.types.is_date(kind):
        values = values.cast(pa.date32()).cast(pa.int32())
    elif pa.types.is_timestamp(kind):
        values = values.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64())
    numbers = (
        values.cast(pa.float64(), safe=False) if not pa.types.is_null(kind) else pa.nulls(len(values), pa.float64())
    )
    doubles = pc.fill_null(numbers, 0.0).to_numpy(zero_copy_only=False)
    # NaN is the largest double, as in Spark.
    return np.nan_to_num(doubles, nan=np.inf, posinf=np.inf, neginf=-np.inf), nulls


def ordered_value_of(value: Any) -> Any:
    """Returns a literal of a condition in the same order; None for NULL and for types without ranges.

    Args:
        value: as ``sql_ext.readers.literals`` gives it.
    """
    if isinstance(value, str):
        return value.encode()
    if value is None or isinstance(value, bytes):
        return None
    number = float(value)
    return np.inf if np.isnan(number) else number
