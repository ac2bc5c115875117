"""Functions of sums: the aggregates of a query, their values and their derivatives.

An aggregate is a function of sums over rows. ``avg(x)``, for example, is the sum of ``x`` divided by the number of its
values. The sums are those of ``Moment``: for an input ``x`` of a query, the number of rows in which it is not null, the
sum, and the sum of squares.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Moment(IntEnum):
    """Which power of an input a sum has."""

    COUNT = 0
    SUM = 1
    SQUARES = 2


@dataclass(frozen=True)
class Term:
    """A sum over rows.

    Attributes:
        input: number of the input.
        moment: the power of the input.
    """

    input: int
    moment: Moment


@dataclass(frozen=True, eq=False)
class Value:
    """A function of sums and its derivatives, for each group.

    Attributes:
        value: per group; NaN where the function is not defined.
        slopes: derivative by each sum, per group.
    """

    value: Floats
    slopes: Mapping[Term, Floats]

    def _combined(self, other: Value, value: Floats, mine: Floats, others: Floats) -> Value:
        slopes: dict[Term, Floats] = {term: slope * mine for term, slope in self.slopes.items()}
        for term, slope in other.slopes.items():
            slopes[term] = slopes.get(term, np.zeros_like(value)) + slope * others
        return Value(value, slopes)

    def __add__(self, other: Value) -> Value:
        one = np.ones_like(self.value)
        return self._combined(other, self.value + other.value, one, one)

    def __sub__(self, other: Value) -> Value:
        one = np.ones_like(self.value)
        return self._combined(other, self.value - other.value, one, -one)

    def __mul__(self, other: Value) -> Value:
        return self._combined(other, self.value * other.value, other.value, self.value)

    def __truediv__(self, other: Value) -> Value:
        with np.errstate(divide="ignore", invalid="ignore"):
            divisor = np.where(other.value == 0.0, np.nan, other.value)
            value = self.value / divisor
            return self._combined(other, value, 1.0 / divisor, -value / divisor)

    def root(self) -> Value:
        """Returns the square root; that of a number which rounding has made negative is 0, where no slope exists."""
        value = np.sqrt(np.maximum(self.value, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.where(value > 0.0, 0.5 / value, np.nan)
        return Value(value, {term: slopes * slope for term, slopes in self.slopes.items()})


class Function(ABC):
    """A function of sums."""

    @abstractmethod
    def of(self, sums: Mapping[Term, Floats]) -> Value:
        """Returns value and derivatives.

        Args:
            sums: of all rows, per group.
        """

    @property
    @abstractmethod
    def terms(self) -> frozenset[Term]:
        """The sums of which it is a function."""


@dataclass(frozen=True)
class Constant(Function):
    """A number."""

    number: float

    def of(self, sums: Mapping[Term, Floats]) -> Value:
        """See ``Function.of``."""
        groups = len(next(iter(sums.values())))
        return Value(np.full(groups, self.number), {})

    @property
    def terms(self) -> frozenset[Term]:
        """See ``Function.terms``."""
        return frozenset()


@dataclass(frozen=True)
class Sum(Function):
    """A sum itself."""

    term: Term

    def of(self, sums: Mapping[Term, Floats]) -> Value:
        """See ``Function.of``."""
        value = sums[self.term]
        return Value(value, {self.term: np.ones_like(value)})

    @property
    def terms(self) -> frozenset[Term]:
        """See ``Function.terms``."""
        return frozenset({self.term})


@dataclass(frozen=True)
class Arithmetic(Function):
    """Two functions and an operator: ``+``, ``-``, ``*`` or ``/``."""

    operator: str
    left: Function
    right: Function

    def of(self, sums: Mapping[Term, Floats]) -> Value:
        """See ``Function.of``."""
        left, right = self.left.of(sums), self.right.of(sums)
        match self.operator:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
        return left / right

    @property
    def terms(self) -> frozenset[Term]:
        """See ``Function.terms``."""
        return self.left.terms | self.right.terms


@dataclass(frozen=True)
class Root(Function):
    """A square root."""

    of_what: Function

    def of(self, sums: Mapping[Term, Floats]) -> Value:
        """See ``Function.of``."""
        return self.of_what.of(sums).root()

    @property
    def terms(self) -> frozenset[Term]:
        """See ``Function.terms``."""
        return self.of_what.terms


def count(number: int) -> Function:
    """The rows in which an input is not null."""
    return Sum(Term(number, Moment.COUNT))


def total(number: int) -> Function:
    """The sum of an input."""
    return Sum(Term(number, Moment.SUM))


def mean(number: int) -> Function:
    """The mean of an input."""
    return Arithmetic("/", total(number), count(number))


def variance(number: int, *, of_sample: bool) -> Function:
    """The variance of an input.

    Args:
        number: of the input.
        of_sample: divides by the number of rows less 1.
    """
    squares = Sum(Term(number, Moment.SQUARES))
    deviations = Arithmetic("-", squares, Arithmetic("/", Arithmetic("*", total(number), total(number)), count(number)))
    rows = Arithmetic("-", count(number), Constant(1.0)) if of_sample else count(number)
    return Arithmetic("/", deviations, rows)
