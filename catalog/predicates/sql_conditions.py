"""Conditions from SQL: the only walk over the trees of sqlglot. The caller says what columns and literals mean."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from sqlglot import exp

from catalog.predicates.conditions import AllOf, AnyOf, Condition, Not
from catalog.predicates.operators import IN, IS_NULL, MIRRORED

C = TypeVar("C")

_OPERATORS: Mapping[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.NullSafeEQ: "<=>",
}  # fmt: skip
# What a node may say, where it is more than its operands.
_PARTS: Mapping[type[exp.Expr], tuple[str, ...]] = {
    exp.Between: ("this", "low", "high"),
    exp.In: ("this", "expressions"),
    exp.Like: ("this", "expression", "negate"),
    exp.Column: ("this", "table", "db", "catalog"),
}


class Reading(Protocol[C]):
    """What a caller makes of comparisons and of conditions that are none."""

    def comparison(self, node: exp.Expr, column: exp.Expr, operator: str, literals: Sequence[exp.Expr]) -> Condition[C]:
        """Returns a comparison, or what is to be made of it.

        Args:
            node: the condition that has the comparison.
            column: the side that is compared.
            operator: ``=``, ``<>``, ``<``, ``<=``, ``>``, ``>=``, ``<=>``, ``in`` or ``is_null``.
            literals: what it is compared with.
        """

    def other(self, node: exp.Expr, detail: str = "") -> Condition[C]:
        """Returns what is to be made of any other condition.

        Args:
            node: the condition.
            detail: what it says beyond a known condition, for a message.
        """


@dataclass(frozen=True)
class SqlConditions(Generic[C]):
    """Makes conditions from parsed SQL.

    Attributes:
        reading: the caller.
        deepest: levels of AND, OR, NOT and brackets beyond which a condition is refused.
    """

    reading: Reading[C]
    deepest: int = sys.maxsize

    def condition(self, node: exp.Expr, depth: int = 0) -> Condition[C]:
        """Returns the condition of a node.

        Raises:
            RecursionError: it is nested too deeply.
        """
        if depth > self.deepest:
            raise RecursionError
        known = _PARTS.get(type(node), ("this", "expression"))
        others = [name for name, value in node.args.items() if value and name not in known]
        match node:
            # A node may say more than is understood here, such as SYMMETRIC of BETWEEN.
            case _ if others:
                return self.reading.other(node, f" ({', '.join(others)})")
            case exp.Paren():
                return self.condition(node.this, depth + 1)
            case exp.And() | exp.Or():
                parts = tuple(self.condition(part, depth + 1) for part in _operands(node))
                return AllOf(parts) if isinstance(node, exp.And) else AnyOf(parts)
            case exp.Not():
                return Not(self.condition(node.this, depth + 1))
        return self._leaf(node)

    def _leaf(self, node: exp.Expr) -> Condition[C]:
        compared = self.reading.comparison
        match node:
            case exp.Between():
                ends = ((">=", node.args["low"]), ("<=", node.args["high"]))
                return AllOf(tuple(compared(node, node.this, operator, [end]) for operator, end in ends))
            case exp.In() if node.expressions:
                return compared(node, node.this, IN, node.expressions)
            case exp.Is() if isinstance(node.expression, exp.Null):
                return compared(node, node.this, IS_NULL, ())
        operator = _OPERATORS.get(type(node))
        return self.reading.other(node) if operator is None else self.compared(node, operator)

    def compared(self, node: exp.Expr, operator: str) -> Condition[C]:
        """Returns the comparison of the two sides of a node, one of which is a column."""
        compared = self.reading.comparison
        if isinstance(unwrapped(node.this), (exp.Column, exp.Dot)):
            return compared(node, node.this, operator, [node.expression])
        return compared(node, node.expression, MIRRORED.get(operator, operator), [node.this])


def _operands(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yields the operands of a chain of one connective, so that thousands of them form one level."""
    todo = [node]
    while todo:
        operand = todo.pop()
        if type(operand) is type(node):
            todo += [operand.expression, operand.this]
        else:
            yield operand


def unwrapped(node: exp.Expr) -> exp.Expr:
    """Returns what is inside of brackets."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def literal_text(node: exp.Expr) -> str | None:
    """Returns the text of a literal; None for other nodes."""
    is_text = isinstance(node, exp.RawString) or (isinstance(node, exp.Literal) and node.is_string)
    return str(node.this) if is_text else None


def name_parts(node: exp.Expr) -> tuple[str, ...]:
    """Returns the parts of a column's name, such as three for ``a.b.c``; empty if the node is not a column."""
    after: list[str] = []
    while isinstance(node, exp.Dot):
        if not isinstance(node.expression, exp.Identifier):
            return ()
        after.append(node.expression.name)
        node = node.this
    if not isinstance(node, exp.Column) or not all(isinstance(part, exp.Identifier) for part in node.parts):
        return ()
    return (*(part.name for part in node.parts), *reversed(after))
