"""Random conditions over random columns, and the JSON tree that the shim makes of a condition (Conditions.scala)."""

from __future__ import annotations

import base64
import itertools
import math
from collections.abc import Sequence
from decimal import Decimal
from random import Random
from typing import Any

from sql_truth import DAY_MICROS, WHOLE_BITS, Operand, Session, cast, digits, single

DECIMALS = ("decimal(10,2)", "decimal(12,2)", "decimal(14,4)", "decimal(20,0)", "decimal(38,6)")
# What a column of each type may be cast to, whether or not the index can say anything of it.
CASTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(WHOLE_BITS, (*WHOLE_BITS, "float", "double", *DECIMALS, "string", "boolean")),
    "float": ("double", "int", "bigint", "decimal(14,4)"),
    "double": ("float", "int", "bigint", "decimal(14,4)"),
    **dict.fromkeys(DECIMALS, ("double", "float", "int", "bigint", *DECIMALS)),
    "date": ("timestamp", "timestamp_ntz"),
    "timestamp": ("date", "timestamp_ntz", "bigint"),
    "timestamp_ntz": ("date", "timestamp"),
    "string": ("int",),
    "boolean": ("int",),
    "binary": (),
}
# Where whole numbers are no longer all exact.
_ROUNDED_AS = {2**24: "float", 2**53: "double"}
_FAMILIES = (
    tuple(WHOLE_BITS), ("int", "bigint"), ("float", "double"), DECIMALS,
    ("date", "timestamp", "timestamp_ntz"), ("string",), ("boolean", "boolean", "binary"),
)  # fmt: skip
_MICROS = (
    0,
    1,
    -1,
    999,
    1000,
    -999,
    -1001,
    86_400_000_000,
    -62_135_596_800_000_000,
    253_402_300_799_999_999,
    9 * 10**18,
)
_TEXTS = (
    "", " ", "a", "a ", "a  ", "ab", "b", "\x00", "A", "é", "z", "zz", "7", " 7", "-12", "\ud7ff", "\ue000", "\uffff",
    "\U00010000", "\U0010ffff", "a\U0010ffff", "\ud7ff\ud7ff",
)  # fmt: skip
_REALS = (
    0.0, -0.0, math.nan, math.inf, -math.inf, 1.0, -1.5, 0.1, 100.25, 16_777_215.0, 16_777_216.0, -16_777_216.0,
    16_777_218.0, 2.0**31, 2.0**53 - 1, 2.0**53, -(2.0**53), 2.0**53 + 2, 2.0**63, 1e300, 5e-324, 3.4028234663852886e38,
    1.7976931348623157e308, -1.7976931348623157e308,
)  # fmt: skip


def draw_type(random: Random, without: Sequence[str] = ()) -> str:
    """A type of a column; each family of types is as likely as the others."""
    return random.choice([t for t in random.choice(_FAMILIES) if t not in without] or ["int"])


def draw_focus(sql_type: str, random: Random) -> int:
    """A number around which values of a column are drawn: many of them meet, and rounding shows."""
    limit = 1 << WHOLE_BITS.get(sql_type, 64) - 1
    special = (0, 0, 100, 2**24, -(2**24), 2**53, -(2**53), -limit, limit - 1)
    return random.choice([number for number in special if -limit <= number < limit])


def draw(sql_type: str, focus: int, random: Random) -> Any:
    """A value of the type: near the focus, a special one, or any."""
    number = focus + random.randint(-3, 3)
    if sql_type in WHOLE_BITS:
        limit = 1 << WHOLE_BITS[sql_type] - 1
        any_value = random.choice((random.randint(-120, 120), random.randint(-limit, limit - 1)))
        return min(max(number if random.random() < 0.7 else any_value, -limit), limit - 1)
    if sql_type in ("float", "double"):
        close = (float(focus), float(focus), float(number), float(number), number + 0.5)
        real = random.choice((*close, random.choice(_REALS), random.uniform(-150, 150)))
        return single(real) if sql_type == "float" else real
    if sql_type.startswith("decimal"):
        precision, scale = digits(sql_type)
        limit = 10**precision - 1
        close = number * 10**scale + random.choice((0, 0, 1, -1, 10**scale // 2, 10**scale // 4))
        unscaled = random.choice((close, close, close, 0, limit, -limit, random.randint(-limit, limit)))
        return Decimal(min(max(unscaled, -limit), limit)).scaleb(-scale)
    if sql_type == "date":
        special = random.choice((0, -1, -719_162, 2_932_896, 2**31 - 1, -(2**31)))
        return random.choice((number % 1000, number % 1000, special, random.randint(-1000, 1000)))
    if sql_type.startswith("timestamp"):
        within = random.choice((0, 0, 1, -1, 999, -1000, random.randint(0, DAY_MICROS)))
        return random.choice((number % 1000 * DAY_MICROS + within,) * 3 + (random.choice(_MICROS),))
    if sql_type == "boolean":
        return random.random() < 0.5
    if sql_type == "binary":
        return random.choice((b"", b"\x00", b"a", b"\xff", b"\x7f\x80"))
    return random.choice(_TEXTS)


def near(value: Any, sql_type: str, random: Random) -> Any:
    """The value or a neighbour of it."""
    if value is None or isinstance(value, (bool, bytes)):
        return value
    if isinstance(value, str):
        return value + random.choice(("", "", " ", "a", "\U0010ffff"))
    if isinstance(value, float):
        if random.random() < 0.6 or not math.isfinite(value):
            return value
        value = math.nextafter(value, random.choice((-math.inf, math.inf)))
        return single(value) if sql_type == "float" else value
    if isinstance(value, Decimal):
        precision, scale = digits(sql_type)
        moved = value + random.choice((0, 0, 1, -1)) * Decimal(1).scaleb(-scale)
        return moved if abs(moved) < Decimal(10) ** (precision - scale) else value
    moved = value + random.choice((0, 0, 0, 1, -1, 1000, -1000))
    bits = WHOLE_BITS.get(sql_type, 32 if sql_type == "date" else 64)
    return moved if -(1 << bits - 1) <= moved < 1 << bits - 1 else value


# ----------------------------------------------------------------------------------------------------------- conditions


class Conditions:
    """Draws conditions.

    Args:
        columns: type and focus by name, those of the index and others.
        hashes: lists of columns that are hashed.
    """

    def __init__(self, columns: dict[str, tuple[str, int]], hashes: Sequence[tuple[str, ...]], random: Random) -> None:
        self.columns, self.hashes, self.random = columns, hashes, random
        self.numbers = itertools.count()

    def single(self) -> tuple:
        """A comparison of one column, or its negation."""
        leaf = self.of_column()
        return ("not", leaf) if self.random.random() < 0.5 else leaf

    def tree(self, leaves: int) -> tuple:
        random = self.random
        if random.random() < 0.2:
            return ("not", self.tree(leaves))
        if leaves <= 1:
            if random.random() < 0.08:
                kind = random.choice(("same", "coalesce"))
                flags = (True, False, None) if kind == "same" else (True, False)
                return (kind, self.leaf(), random.choice(flags))
            return self.leaf()
        here = random.randint(1, leaves - 1)
        return (random.choice(("and", "or")), self.tree(here), self.tree(leaves - here))

    def leaf(self) -> tuple:
        random = self.random
        chance = random.random()
        if chance < 0.03:
            return ("const", random.choice((True, False, None)))
        if chance < 0.08:
            return ("opaque", next(self.numbers))
        if chance < 0.2:
            operand = Operand(hash_of=random.choice(self.hashes))
            literal = None if random.random() < 0.05 else random.randint(-(2**31), 2**31 - 1)
            return ("compare", random.choice(("=", "<=>", "<", "<=", ">", ">=")), operand, literal)
        return self.of_column()

    def of_column(self) -> tuple:
        """A comparison of one column."""
        random = self.random
        column = random.choice(list(self.columns))
        sql_type, focus = self.columns[column]
        target = self._cast_of(sql_type, focus) if random.random() < 0.4 else None
        operand = Operand(column, sql_type, None if target == sql_type else target)
        operators = ["=", "<=>", "<=>", "<", "<=", ">", ">=", "in", "is_null", "is_not_null"]
        is_text = operand.compared_as == "string"
        operator = random.choice([*operators, "starts_with", "starts_with", "starts_with"] if is_text else operators)
        if operator in ("is_null", "is_not_null"):
            return (operator, operand)
        if operator == "in":
            return ("in", operand, [self._literal(operand, focus) for _ in range(random.randint(0, 4))])
        return ("compare", operator, operand, self._literal(operand, focus))

    def _cast_of(self, sql_type: str, focus: int) -> str | None:
        """A type to cast to, often one that rounds; decimals are one of them, however many there are."""
        targets = CASTS[sql_type]
        if not targets:
            return None
        if abs(focus) in _ROUNDED_AS and _ROUNDED_AS[abs(focus)] in targets and self.random.random() < 0.6:
            return _ROUNDED_AS[abs(focus)]
        decimals = [t for t in targets if t.startswith("decimal")]
        target = self.random.choice([t for t in targets if t not in decimals] + decimals[:1])
        return self.random.choice(decimals) if target in decimals else target

    def _literal(self, operand: Operand, focus: int) -> Any:
        if self.random.random() < 0.1:
            return None
        if operand.cast is not None and self.random.random() < 0.5:  # one that a value of the column meets
            value = cast(draw(operand.sql_type, focus, self.random), operand.sql_type, operand.cast, Session("try"))
            if value is not None:
                return value
        return draw(operand.compared_as, focus, self.random)


def leaves_of(node: tuple) -> list[tuple]:
    """The comparisons in a condition."""
    found, todo = [], [node]
    while todo:
        part = todo.pop()
        if part[0] in ("compare", "in", "is_null", "is_not_null", "opaque"):
            found.append(part)
        else:
            todo += [inner for inner in part[1:] if isinstance(inner, tuple)]
    return found


# -------------------------------------------------------------------------------------------------------------- as JSON


def as_json(node: tuple, hash_types: dict[str, str]) -> dict[str, Any]:
    """The tree that the shim sends for a condition.

    Args:
        node: the condition.
        hash_types: today's types of all columns, which it sends along with a hash.
    """
    kind = node[0]
    if kind == "const":
        return {"operator": "all" if node[1] else "never"}
    if kind in ("and", "or"):
        return _many(kind, [as_json(part, hash_types) for part in _chain(node, kind)])
    if kind == "not":
        return _many("not", [as_json(node[1], hash_types)])
    if kind in ("is_null", "is_not_null"):
        return _comparison(node[1], kind, [], hash_types)
    if kind == "in":
        return _comparison(node[1], "in", node[2], hash_types)
    if kind == "compare":
        return _comparison(node[2], node[1], [node[3]], hash_types)
    return {"operator": "unknown"}


def _many(operator: str, parts: list[dict[str, Any]]) -> dict[str, Any]:
    if all(part["operator"] == "unknown" for part in parts):
        return {"operator": "unknown"}
    return {"operator": operator, "of": parts}


def _chain(node: tuple, kind: str) -> list[tuple]:
    return [*_chain(node[1], kind), *_chain(node[2], kind)] if node[0] == kind else [node]


def _comparison(operand: Operand, operator: str, literals: list[Any], types: dict[str, str]) -> dict[str, Any]:
    values = [spelled(literal, operand.compared_as) for literal in literals]
    if operand.hash_of:
        columns = list(operand.hash_of)
        return {"operator": operator, "hash_of": columns, "types": [types[c] for c in columns], "values": values}
    json = {"operator": operator, "column": operand.column, "type": operand.sql_type, "values": values}
    return json if operand.cast is None else {**json, "as": operand.cast}


def spelled(value: Any, sql_type: str) -> Any:
    """A literal as the shim writes it."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else repr(value).replace("inf", "Infinity").replace("e+", "E")
    if isinstance(value, Decimal):
        return str(value)
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value
