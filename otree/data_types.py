"""The format's names of column types."""

import re
from collections.abc import Mapping

STRING = "StringDataType"

# The format has no names for bytes, shorts, booleans, timestamps without zone and binaries: they take the name of the
# type that holds their values, and table properties of USE record the actual types.
DATA_TYPES: Mapping[str, str] = {
    "tinyint": "IntegerDataType",
    "smallint": "IntegerDataType",
    "int": "IntegerDataType",
    "bigint": "LongDataType",
    "float": "FloatDataType",
    "double": "DoubleDataType",
    "decimal": "DecimalDataType",
    "timestamp": "TimestampDataType",
    "date": "DateDataType",
    "string": STRING,
    "boolean": "IntegerDataType",
    "timestamp_ntz": "TimestampDataType",
    "binary": STRING,
}
"""Spark's simple type names (a decimal without its precision) to the format's names."""

EXTENDED_TYPES = frozenset({"tinyint", "smallint", "boolean", "timestamp_ntz", "binary"})
"""Types that other writers of the format cannot index, although the name they take here is one of its names."""

_DECIMAL_ARGUMENTS = re.compile(r"^decimal\(\s*\d+\s*,\s*-?\d+\s*\)$")


def format_data_type(spark_type: str) -> str | None:
    """Return the format's name of a Spark type.

    Args:
        spark_type: Spark's simple type name, e.g. "bigint" or "decimal(10,2)".

    Returns:
        The name, or None when a column of this type cannot be indexed.
    """
    name = spark_type.strip().lower()
    return DATA_TYPES.get("decimal" if _DECIMAL_ARGUMENTS.match(name) else name)
