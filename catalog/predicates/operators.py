"""The operators of comparisons: how they are mirrored, negated, and tested on the bounds of values."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

EQUAL, NOT_EQUAL, NULL_SAFE_EQUAL = "=", "<>", "<=>"
IN = "in"
IS_NULL, IS_NOT_NULL = "is_null", "is_not_null"
STARTS_WITH = "starts_with"
ORDERED = ("<", "<=", ">", ">=")
"""The operators of an order."""

MIRRORED: Mapping[str, str] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The operator after both sides are exchanged; other operators stay as they are."""

NEGATED: Mapping[str, str] = {
    "=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<", IS_NULL: IS_NOT_NULL, IS_NOT_NULL: IS_NULL,
}  # fmt: skip
"""The operator that is true where another one is false. The others have none: of ``<=>``, null is one of the values."""

FUNCTIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
"""The operators of an order in Python, for values, arrays and columns of Spark."""

BOUND_TESTS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "=": (("low", "<="), ("high", ">=")),
    "<": (("low", "<"),),
    "<=": (("low", "<="),),
    ">": (("high", ">"),),
    ">=": (("high", ">="),),
}
"""How the ``low`` and ``high`` bound of values compare with a literal if the operator may be true for one of them."""

_LAST_CHARACTER = 0x10FFFF


def sql_text(name: str) -> str:
    """Returns an operator for messages."""
    return name.replace("_", " ")


def after_prefix(prefix: str) -> str | None:
    """Returns a string above all strings with this prefix, in the order of code points; None if there is none."""
    kept = prefix.rstrip(chr(_LAST_CHARACTER))
    if not kept:
        return None
    following = ord(kept[-1]) + 1
    # The code points in between are surrogates, which are not characters.
    return kept[:-1] + chr(0xE000 if following == 0xD800 else following)
