"""Conditions as the index judges them, and their form in the JSON of the shim."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

from catalog.errors import TooComplexError
from catalog.predicates.conditions import AllOf, AnyOf, Comparison, Condition, Not, Unknown


@dataclass(frozen=True)
class StoredColumn:
    """A column that is compared.

    Attributes:
        name: stored name.
        sql_type: its type as Spark writes it in lower case, such as ``bigint``.
        cast_type: type that it is cast to for the comparison; None without a cast.
    """

    name: str
    sql_type: str
    cast_type: str | None = None

    @property
    def compared_as(self) -> str:
        """Type in which it is compared."""
        return self.sql_type if self.cast_type is None else self.cast_type


@dataclass(frozen=True)
class RowHash:
    """Spark's hash of columns, which is compared.

    Attributes:
        columns: stored names.
        types: their types.
    """

    columns: tuple[str, ...]
    types: tuple[str, ...]


IndexCondition: TypeAlias = Condition[StoredColumn | RowHash]
"""Values are those of Python; dates are days and times microseconds since 1970."""

_Node: TypeAlias = Mapping[str, Any]


def condition_of_json(text: str) -> IndexCondition:
    """Returns the condition that the shim sent.

    Args:
        text: a node as JSON: an ``operator`` with conditions in ``of``, or with ``values`` for a column or hash.

    Raises:
        TooComplexError: the tree is too deeply nested to parse; the shim sends no such trees.
    """
    try:
        root: _Node = json.loads(text)
    except RecursionError as error:
        raise TooComplexError.of("conditions", "fewer levels") from error
    # Trees may be deeper than Python's stack, so this uses an explicit stack: nodes below come after those above.
    order, todo = [], [root]
    while todo:
        order.append(todo.pop())
        todo += order[-1].get("of", ())
    done: list[IndexCondition] = []
    for node in reversed(order):
        count = len(node.get("of", ()))
        parts = tuple(done[len(done) - count :])
        del done[len(done) - count :]
        done.append(_condition(node, parts))
    return done[0]


def _condition(node: _Node, parts: tuple[IndexCondition, ...]) -> IndexCondition:
    match node["operator"]:
        case "not":
            return Not(parts[0])
        case "and":
            return AllOf(parts)
        case "or":
            return AnyOf(parts)
        case "all":
            return AllOf(())
        case "never":
            return AnyOf(())
    if "hash_of" in node:
        of = RowHash(tuple(node["hash_of"]), tuple(node["types"]))
        return Comparison(of, node["operator"], tuple(node["values"]))
    if "column" in node:
        column = StoredColumn(node["column"], node["type"], node.get("as"))
        return Comparison(
            column, node["operator"], tuple(_value(value, column.compared_as) for value in node["values"])
        )
    return Unknown()


def _value(value: Any, sql_type: str) -> Any:
    """Returns a literal that is written as the shim does."""
    if not isinstance(value, str):
        return value
    if sql_type in ("float", "double"):
        return float(value.replace("Infinity", "inf"))
    if sql_type.startswith("decimal"):
        return Decimal(value)
    return base64.b64decode(value) if sql_type == "binary" else value
