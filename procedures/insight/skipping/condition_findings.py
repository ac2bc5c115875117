"""Why the conditions of a scan do not narrow the index space. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from catalog.jvm.skipping_report import PlannedCondition
from catalog.pruning.read_planning import narrows
from otree.revision import Revision
from otree.transformer import HASHING
from procedures.insight.health.remedy import sql_text
from procedures.insight.skipping.equivalents import equivalent
from procedures.insight.skipping.reasons import Finding, SkippingReason

_RANGES = ("<", "<=", ">", ">=", "STARTS WITH", "LIKE")


@dataclass(frozen=True)
class IndexedColumns:
    """The indexed columns of a table.

    Attributes:
        table: its name.
        configuration: its properties, as JSON.
        newest: newest revision with a region; None if no file is indexed.
        names: names of the indexed columns as users write them.
    """

    table: str
    configuration: str
    newest: Revision | None
    names: tuple[str, ...]

    @property
    def shown(self) -> str:
        """The indexed columns for a message."""
        return ", ".join(self.names)

    def narrows(self, condition: PlannedCondition, revision: Revision | None) -> bool:
        """Whether a condition limits the region of a revision, with its alternatives taken together."""
        if revision is None:
            return False
        if condition.operator == "and":
            return any(self.narrows(part, revision) for part in condition.parts)
        if condition.operator == "or":
            return all(self.narrows(part, revision) for part in condition.parts)
        return condition.tree is not None and narrows(self.configuration, revision.revision_id, condition.tree)


def conjuncts(conditions: Sequence[PlannedCondition]) -> Iterator[PlannedCondition]:
    """Yields the conditions that must all be true, without the ``IS NOT NULL`` that Spark infers from others."""
    flat: list[PlannedCondition] = []
    for condition in conditions:
        flat += conjuncts(condition.parts) if condition.operator == "and" else [condition]
    compared = {name for c in flat if c.comparison != "IS NOT NULL" for name in _column_names(c)}
    for condition in flat:
        if condition.comparison != "IS NOT NULL" or not compared.issuperset(condition.columns):
            yield condition


def _column_names(condition: PlannedCondition) -> Iterator[str]:
    yield from condition.columns
    for part in condition.parts:
        yield from _column_names(part)


def finding_of(condition: PlannedCondition, index: IndexedColumns) -> Finding | None:
    """Returns why a condition does not narrow the newest revision; None if it helps, or is about partitions or weights.

    Args:
        condition: one of ``conjuncts``.
        index: the indexed columns of the table.
    """
    if condition.is_partition or condition.used_by == "partitions" or condition.subject == "hash":
        return None
    if index.narrows(condition, index.newest) or (index.newest is None and condition.used_by == "statistics"):
        return None
    finding = _alternatives(condition, index) if condition.operator == "or" else _single(condition, index)
    if finding is not None and condition.used_by == "statistics":
        message = f"{finding.message} Delta's statistics use this condition, so only the index is affected."
        return Finding(finding.reason, finding.condition, message)
    return finding


def _alternatives(condition: PlannedCondition, index: IndexedColumns) -> Finding | None:
    for alternative in condition.parts:
        if index.narrows(alternative, index.newest):
            continue
        leaves = list(conjuncts([alternative]))
        findings = [_alternatives(c, index) if c.operator == "or" else _single(c, index) for c in leaves]
        of_column = (SkippingReason.OTHER_COLUMN, SkippingReason.OR_WITH_UNINDEXED_COLUMN)
        other = next((f for f in findings if f is not None and f.reason not in of_column), None)
        if other is not None:
            return other
        message = (
            f"The alternative {alternative.text} limits no indexed column ({index.shown or 'there are none'}), so "
            "every file may contain rows for it. Add a condition on an indexed column to this alternative, or index "
            "its column."
        )
        return Finding(SkippingReason.OR_WITH_UNINDEXED_COLUMN, condition.text, message)
    return None


def _single(condition: PlannedCondition, index: IndexedColumns) -> Finding:
    if condition.subject == "function":
        return Finding(SkippingReason.FUNCTION_OVER_COLUMN, condition.text, _without_function(condition))
    if condition.subject == "column":
        return _of_column(condition, index)
    if condition.subject == "cast":
        if index.newest is not None and condition.column not in index.newest.columns:
            return _other_column(condition, index)
        name = ", ".join(condition.columns)
        message = (
            f"The query compares {name} as {condition.cast_type}. Compare it with a constant of its own type, "
            f"{condition.type}."
        )
        return Finding(SkippingReason.CAST, condition.text, message)
    message = "Files are selected by comparisons of one column with constants. Replace the other side by a constant."
    return Finding(SkippingReason.NOT_A_CONSTANT, condition.text, message)


def _without_function(condition: PlannedCondition) -> str:
    better = equivalent(condition)
    if better is not None:
        return f"Write {better}."
    name = ", ".join(condition.columns)
    return (
        f"Compare {name} itself with a constant, or store the result of the function in a column of its own and index "
        "that."
    )


def _of_column(condition: PlannedCondition, index: IndexedColumns) -> Finding:
    revision = index.newest
    if revision is None or condition.column not in revision.columns:
        return _other_column(condition, index)
    name = ", ".join(condition.columns)
    is_hashed = revision.transformers[revision.columns.index(condition.column)].kind == HASHING
    if is_hashed and condition.comparison in _RANGES:
        message = (
            f"{name} is indexed by hashes, which keep no order: only = and IN skip files. Index it with the kind "
            "linear or quantiles."
        )
        return Finding(SkippingReason.RANGE_ON_HASHED_COLUMN, condition.text, message)
    message = (
        f"The condition is true in the whole range of {name} that the index knows, or is of a kind that skips no "
        "files, such as <> or NOT IN. Use =, IN, <, <=, >, >= or a prefix."
    )
    return Finding(SkippingReason.UNSELECTIVE_CONDITION, condition.text, message)


def _other_column(condition: PlannedCondition, index: IndexedColumns) -> Finding:
    name = ", ".join(condition.columns)
    others = "" if index.newest is None else f"; the index has {index.shown}"
    message = (
        f"{name} is not indexed{others}. CALL use.recommend(table => {sql_text(index.table)}, queries => array(…)) "
        "measures whether indexing it saves bytes."
    )
    return Finding(SkippingReason.OTHER_COLUMN, condition.text, message)
