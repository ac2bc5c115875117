"""How the types of columns hash: the weight of a row is a hash of its indexed values."""

import re

# Table property, per revision: how its columns hashed when it was made. A widened type hashes differently, and so does
# its weight.
HASH_TYPES_KEY_PREFIX = "use.index.hashTypes."


def hash_type(sql_type: str) -> str:
    """The class of types whose equal values hash equally.

    Spark hashes the small integers as an int, a decimal of up to 18 digits as its unscaled long and a longer one as
    bytes.
    """
    if sql_type in ("tinyint", "smallint", "int"):
        return "int"
    decimal = re.fullmatch(r"decimal\((\d+),(\d+)\)", sql_type)
    if decimal is not None:
        return f"decimal({'long' if int(decimal[1]) <= 18 else 'bytes'},{decimal[2]})"
    return sql_type
