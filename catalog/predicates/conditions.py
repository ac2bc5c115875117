"""The tree of a condition, and the walk over it on which every visitor is based."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

C = TypeVar("C")
T = TypeVar("T")


@dataclass(frozen=True)
class Comparison(Generic[C]):
    """A comparison of a column, or of what else the caller compares, with literals.

    Attributes:
        column: what is compared, in the form of the caller.
        operator: one of ``catalog.predicates.operators``.
        values: the literals, in the form of the caller.
        text: the condition as SQL, for messages; '' if nobody asks for it.
    """

    column: C
    operator: str
    values: tuple[Any, ...] = ()
    text: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True)
class Unknown:
    """A condition that the caller does not understand: it may be true, false or null for any row.

    Attributes:
        text: the condition as SQL; '' if it is not known.
        reason: why it is not understood, for messages.
    """

    text: str = ""
    reason: str = ""


@dataclass(frozen=True)
class AllOf(Generic[C]):
    """A conjunction; without parts, it is true."""

    parts: tuple[Condition[C], ...]


@dataclass(frozen=True)
class AnyOf(Generic[C]):
    """A disjunction; without parts, it is true for no row."""

    parts: tuple[Condition[C], ...]


@dataclass(frozen=True)
class Not(Generic[C]):
    """A negation; null stays null."""

    part: Condition[C]


Condition: TypeAlias = Comparison[C] | Unknown | AllOf[C] | AnyOf[C] | Not[C]


def nodes(condition: Condition[C]) -> Iterator[Condition[C]]:
    """Yields a condition and all conditions in it, each before its parts."""
    todo = [condition]
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, (AllOf, AnyOf)):
            todo += reversed(node.parts)
        elif isinstance(node, Not):
            todo.append(node.part)


def leaves(condition: Condition[C]) -> Iterator[Comparison[C] | Unknown]:
    """Yields the comparisons and the conditions that are not understood, in order."""
    for node in nodes(condition):
        if isinstance(node, (Comparison, Unknown)):
            yield node


def visit(
    condition: Condition[C],
    leaf: Callable[[Comparison[C] | Unknown, bool], T],
    all_of: Callable[[tuple[T, ...]], T],
    any_of: Callable[[tuple[T, ...]], T],
    not_of: Callable[[T], T] | None = None,
) -> T:
    """Evaluates a condition from its leaves up, and parts from the last to the first.

    Args:
        condition: may be nested more deeply than Python's stack.
        leaf: returns the result of a leaf, or of its negation if the second argument is true.
        all_of: returns the result of a conjunction from those of its parts, in order.
        any_of: the same of a disjunction.
        not_of: the same of a negation. Without it, negations move to the leaves: "not (a and b)" is "not a or not b",
            even if one of them is null.
    """
    todo: list[tuple[Condition[C], bool, bool]] = [(condition, False, False)]
    done: list[T] = []
    while todo:
        node, negated, is_expanded = todo.pop()
        if isinstance(node, Not):
            if not_of is None:
                todo.append((node.part, not negated, False))
            elif is_expanded:
                done.append(not_of(done.pop()))
            else:
                todo += [(node, False, True), (node.part, False, False)]
        elif not isinstance(node, (AllOf, AnyOf)):
            done.append(leaf(node, negated))
        elif not is_expanded:
            todo.append((node, negated, True))
            todo += [(part, negated, False) for part in node.parts]
        else:
            first = len(done) - len(node.parts)
            parts = tuple(reversed(done[first:]))
            del done[first:]
            done.append(all_of(parts) if isinstance(node, AllOf) != negated else any_of(parts))
    return done[0]


def with_leaves(condition: Condition[C], leaf: Callable[[Comparison[C] | Unknown], Condition[T]]) -> Condition[T]:
    """Returns a condition with other leaves.

    Args:
        condition: the condition.
        leaf: returns what takes the place of a leaf.
    """

    def changed(node: Comparison[C] | Unknown, _: bool) -> Condition[T]:
        return leaf(node)

    return visit(condition, changed, AllOf[T], AnyOf[T], Not[T])
