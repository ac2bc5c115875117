"""The parts of an aggregate query: keys, aggregates as functions of sums over rows, and the rows below."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

from catalog.errors import NotSupportedError
from catalog.jvm.query_trees import ExpressionTree, PlanTree
from procedures.insight.approximation.functions import (
    Arithmetic,
    Constant,
    Function,
    Root,
    count,
    mean,
    total,
    variance,
)

_OPERATORS = {"Add": "+", "Subtract": "-", "Multiply": "*", "Divide": "/"}
_VARIANCES = {"VarianceSamp": (True, False), "VariancePop": (False, False)}
_VARIANCES |= {"StddevSamp": (True, True), "StddevPop": (False, True)}
_QUANTILES = frozenset({"Median", "Percentile", "ApproximatePercentile", "PercentileCont"})
_INTEGERS = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT"})
_TRANSPARENT = frozenset({"SubqueryAlias", "Sort"})


@dataclass(frozen=True, eq=False)
class Input:
    """A number of each row that an aggregate takes; NULL where the aggregate leaves the row out.

    Attributes:
        values: the expressions that must not be NULL.
        counts: whether the number is 1, else it is the value of the only expression.
        condition: of a FILTER clause.
        is_condition: whether the only expression is a BOOLEAN that must be true.
        is_shifted: whether a number near the middle is subtracted, so that squares lose no digits.
    """

    values: tuple[ExpressionTree, ...]
    counts: bool
    condition: ExpressionTree | None = None
    is_condition: bool = False
    is_shifted: bool = False

    @property
    def identity(self) -> tuple[object, ...]:
        """Equal for inputs of equal numbers."""
        condition = self.condition.identity if self.condition is not None else ""
        return (*(value.identity for value in self.values), self.counts, condition, self.is_condition, self.is_shifted)


@dataclass(frozen=True)
class Quantile:
    """A quantile of an input.

    Attributes:
        input: number of the input.
        share: share of the values that are at most as large.
    """

    input: int
    share: float


@dataclass(frozen=True)
class NoInterval:
    """An aggregate whose interval cannot be computed from a sample.

    Attributes:
        why: the reason, for people.
    """

    why: str


@dataclass(frozen=True)
class Output:
    """A column of the query.

    Attributes:
        name: of the column.
        what: number of the key that it is, or what it aggregates.
    """

    name: str
    what: int | Function | Quantile | NoInterval


@dataclass(frozen=True, eq=False)
class AggregateQuery:
    """A query with one aggregation.

    Attributes:
        plan: the query.
        source: the node of the rows that are aggregated.
        keys: grouping expressions.
        inputs: numbers of each row.
        outputs: columns of the query, in its order.
        having: conditions on groups, each over attributes in ``key_attributes``.
        key_attributes: results of the aggregation that are made of keys only.
    """

    plan: PlanTree
    source: PlanTree
    keys: tuple[ExpressionTree, ...]
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    having: tuple[ExpressionTree, ...]
    key_attributes: tuple[ExpressionTree, ...]


def not_supported(what: str, instead: str) -> NotSupportedError:
    """Builds the error about a query that has no estimate.

    Args:
        what: the part of the query, as the subject of a sentence.
        instead: the accepted alternative, as a sentence.
    """
    return NotSupportedError(f"{what} cannot be answered from a sample. {instead}")


_FORM = (
    "Accepted are queries of the form SELECT keys and aggregates FROM an indexed table, with joins of other tables, "
    "WHERE, GROUP BY, HAVING on keys, and ORDER BY."
)


def aggregate_query(plan: PlanTree) -> AggregateQuery:
    """Reads an analyzed query.

    Args:
        plan: the query.

    Raises:
        NotSupportedError: the query has another form.
    """
    reading = _Reading()
    node = plan
    while node.kind != "Aggregate":
        node = reading.node_above(node)
    if any(child.kind == "Expand" for child in node.children):
        raise not_supported("GROUP BY with ROLLUP, CUBE or GROUPING SETS", "Group by columns.")
    return reading.aggregation(plan, node)


@dataclass(eq=False)
class _Reading:
    """Reads the nodes from the top of a plan."""

    projections: list[PlanTree] = field(default_factory=list)
    having: list[ExpressionTree] = field(default_factory=list)
    inputs: list[Input] = field(default_factory=list)
    keys: tuple[ExpressionTree, ...] = ()
    definitions: dict[int, ExpressionTree] = field(default_factory=dict)

    def node_above(self, node: PlanTree) -> PlanTree:
        """Returns the node below one that is above the aggregation."""
        match node.kind:
            case "Project":
                self.projections.append(node)
            case "Filter":
                self.having.extend(node.expressions)
            case kind if kind not in _TRANSPARENT:
                what = "LIMIT" if kind.endswith("Limit") else f"A query without an aggregate ({kind})"
                raise not_supported("OFFSET" if kind == "Offset" else what, _FORM)
        return node.children[0]

    def aggregation(self, plan: PlanTree, node: PlanTree) -> AggregateQuery:
        """Returns the query that an aggregation and the nodes above it define."""
        self.keys = node.keys
        for key in self.keys:
            # The hash of a key distinguishes texts that the collation does not.
            if " COLLATE " in key.type:
                raise not_supported(f"GROUP BY {key.sql} of type {key.type}", "Group by lower(...) or another key.")
        key_attributes = tuple(result for result in node.results if "AggregateExpression" not in result.kinds)
        known = {result.attribute_id for result in key_attributes}
        for condition in self.having:
            if not condition.attribute_ids <= known:
                raise not_supported(f"HAVING {condition.sql}", "HAVING may compare keys only.")
        # From the aggregation upwards, each projection defines its attributes by those below it.
        results = node.results
        for projection in (node, *reversed(self.projections)):
            results = projection.results
            self.definitions.update(
                (result.attribute_id, result.children[0])
                for result in results
                if result.kind == "Alias" and result.attribute_id is not None
            )
        outputs = tuple(Output(result.name, self._output_of(result)) for result in results)
        for name, columns in Counter(output.name for output in outputs).items():
            # Answers name keys and aggregates by their columns.
            if columns > 1:
                raise not_supported(f"A query with {columns} columns named {name}", "Give each its own alias.")
        if all(_is_key_or_constant(output.what) for output in outputs):
            raise not_supported("A query without an aggregate", _FORM)
        return AggregateQuery(
            plan, node.children[0], self.keys, tuple(self.inputs), outputs, tuple(self.having), key_attributes
        )

    def _output_of(self, result: ExpressionTree) -> int | Function | Quantile | NoInterval:
        resolved = self._resolved(result)
        for number, key in enumerate(self.keys):
            if resolved.identity == key.identity:
                return number
        if resolved.kind == "AggregateExpression" and resolved.aggregate.kind in _QUANTILES:
            return self._quantile(resolved)
        try:
            return self._function(result)
        except _WithoutIntervalError as error:
            return NoInterval(str(error))

    def _resolved(self, expression: ExpressionTree) -> ExpressionTree:
        """The expression that an attribute or alias stands for."""
        while True:
            if expression.kind == "Alias":
                expression = expression.children[0]
            elif expression.kind == "AttributeReference" and expression.attribute_id in self.definitions:
                expression = self.definitions[expression.attribute_id]
            else:
                return expression

    def _function(self, expression: ExpressionTree) -> Function:
        expression = self._resolved(expression)
        match expression.kind:
            case "Literal" if _is_number(expression):
                return Constant(float(str(expression.constant)))
            case "Cast" if expression.type in ("DOUBLE", "FLOAT", "BIGINT") or expression.type.startswith("DECIMAL"):
                return self._cast(expression)
            case "UnaryMinus":
                return Arithmetic("-", Constant(0.0), self._function(expression.children[0]))
            case "UnaryPositive" | "KnownNotNull" | "CheckOverflow":
                return self._function(expression.children[0])
            case "AggregateExpression":
                return self._aggregate(expression)
            case kind if kind in _OPERATORS:
                left, right = expression.children
                return Arithmetic(_OPERATORS[kind], self._function(left), self._function(right))
        raise _WithoutIntervalError(f"{expression.sql} is not made of sums, differences, products and ratios")

    def _cast(self, expression: ExpressionTree) -> Function:
        (child,) = expression.children
        if _scale(child.type) > _scale(expression.type):
            raise _WithoutIntervalError(f"{expression.sql} rounds")
        return self._function(child)

    def _aggregate(self, expression: ExpressionTree) -> Function:
        if expression.is_distinct:
            raise _WithoutIntervalError("distinct values that the sample does not have cannot be counted")
        function = expression.aggregate
        match function.kind:
            case "Count":
                return count(self._input(function.children, expression.condition, counts=True))
            case "CountIf":
                return count(self._input(function.children, expression.condition, counts=True, is_condition=True))
            case "Sum" | "Average" if _is_number(function.children[0]):
                number = self._input(function.children[:1], expression.condition)
                return total(number) if function.kind == "Sum" else mean(number)
            case kind if kind in _VARIANCES and _is_number(function.children[0]):
                of_sample, is_root = _VARIANCES[kind]
                number = self._input(function.children[:1], expression.condition, is_shifted=True)
                square = variance(number, of_sample=of_sample)
                return Root(square) if is_root else square
        raise _WithoutIntervalError(f"a sample gives no interval for {expression.sql}")

    def _quantile(self, expression: ExpressionTree) -> Quantile | NoInterval:
        function = expression.aggregate
        values, *more = function.children
        share = more[0] if more else None
        if not _is_number(values) or expression.is_distinct or _is_reversed(function):
            return NoInterval(f"a sample gives no interval for {expression.sql}")
        if function.kind == "Median":
            return Quantile(self._input((values,), expression.condition), 0.5)
        if share is not None and share.kind == "Cast":
            share = share.children[0]
        if share is None or share.kind != "Literal" or (function.kind == "Percentile" and not _counts_rows(function)):
            return NoInterval(f"a sample gives an interval for one constant percentage only, not for {expression.sql}")
        return Quantile(self._input((values,), expression.condition), float(str(share.constant)))

    def _input(
        self,
        values: tuple[ExpressionTree, ...],
        condition: ExpressionTree | None,
        *,
        counts: bool = False,
        is_condition: bool = False,
        is_shifted: bool = False,
    ) -> int:
        """Returns the number of an input, which is made if it is new."""
        made = Input(values, counts, condition, is_condition, is_shifted)
        for number, known in enumerate(self.inputs):
            if known.identity == made.identity:
                return number
        self.inputs.append(made)
        return len(self.inputs) - 1


class _WithoutIntervalError(Exception):
    """An expression has no interval; the text says why."""


def _is_key_or_constant(what: int | Function | Quantile | NoInterval) -> bool:
    return isinstance(what, int) or (isinstance(what, Function) and not what.terms)


def _is_number(expression: ExpressionTree) -> bool:
    # INTERVAL begins like INT.
    return expression.type in _INTEGERS | {"FLOAT", "DOUBLE"} or expression.type.startswith("DECIMAL(")


def _scale(type_name: str) -> float:
    """The number of digits behind the decimal point that a type keeps; infinite for others than exact numbers."""
    if type_name in _INTEGERS:
        return 0.0
    if type_name.startswith("DECIMAL("):
        return float(type_name.rstrip(")").rpartition(",")[2])
    return math.inf


def _is_reversed(function: ExpressionTree) -> bool:
    return function.kind in ("Percentile", "PercentileCont") and bool(function.java.reverse())


def _counts_rows(function: ExpressionTree) -> bool:
    """Whether ``percentile`` counts each row once."""
    if len(function.children) < 3:
        return True
    frequency = function.children[2]
    while frequency.kind == "Cast":
        frequency = frequency.children[0]
    return frequency.kind == "Literal" and str(frequency.constant) == "1"
