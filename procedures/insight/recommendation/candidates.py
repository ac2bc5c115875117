"""Search of index columns: candidates grow column by column, and each is measured on the sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from catalog.predicates.operators import EQUAL
from procedures.insight.recommendation.simulated_layout import SampledColumn, TableSample, indexed_files
from procedures.insight.recommendation.workload import Workload

MOST_COLUMNS = 4
# Only so many candidate columns are combined: those that save the most on their own.
_MOST_COMBINED = 8
# An index must save this share of the bytes that queries read without it, and each further column of those that
# queries read with one column less: an index costs a rewrite, and columns that save nothing dilute the others.
FIRST_SAVING = 0.1
FURTHER_SAVING = 0.05
_SKEW_PARTS = 16
_SKEWED = 0.5


@dataclass(frozen=True)
class Candidate:
    """Index columns, and the share of the bytes that queries would read with them.

    Attributes:
        columns: names; empty for no index.
        share: expected share of the bytes that the queries read.
    """

    columns: tuple[str, ...]
    share: float


def ranked_candidates(
    sample: TableSample, workload: Workload, indexable: Sequence[str], no_index_share: float
) -> list[Candidate]:
    """Measures candidates and ranks them.

    Args:
        sample: a sample of the table.
        workload: the queries.
        indexable: columns that may be indexed.
        no_index_share: share that the queries read without an index.

    Returns:
        The best first, always with the candidate without columns. A candidate must save enough for its number of
        columns to be ranked before a smaller one.
    """
    used = [name for name in workload.columns if name in indexable]
    if not used and workload.has_samples and indexable:
        # Samples alone need weights that differ from row to row, so the column with the most values is best.
        used = [max(indexable, key=lambda name: len(np.unique(sample.weights((name,)))))]
    measured: dict[tuple[str, ...], Candidate] = {}

    def measure(columns: tuple[str, ...]) -> Candidate:
        if columns not in measured:
            measured[columns] = Candidate(columns, indexed_files(sample, columns).mean_share(workload))
        return measured[columns]

    singles = sorted((measure((name,)) for name in used), key=lambda candidate: candidate.share)
    combined = [candidate.columns[0] for candidate in singles[:_MOST_COMBINED]]
    best = singles[0] if singles else None
    while best is not None and len(best.columns) < min(MOST_COLUMNS, len(combined)):
        larger = [measure((*best.columns, name)) for name in combined if name not in best.columns]
        best = min(larger, key=lambda candidate: candidate.share)
    candidates = [Candidate((), no_index_share), *measured.values()]
    return sorted(candidates, key=lambda candidate: (_score(candidate), len(candidate.columns)))


def _score(candidate: Candidate) -> float:
    """Returns the share, increased by the least saving that each column must have."""
    if not candidate.columns:
        return candidate.share * (1 - FIRST_SAVING)
    return candidate.share * (1 - FURTHER_SAVING) ** (1 - len(candidate.columns))


def transformation_of(column: SampledColumn, operators: frozenset[str], kinds: Sequence[str], *, is_text: bool) -> str:
    """Chooses how a column is indexed.

    The files do not depend on it, since rows follow the ranks of their values. It decides how well cubes separate the
    rows inside them.

    Args:
        column: the sampled values.
        operators: how the queries compare the column.
        kinds: transformations that the column's type accepts, the default first.
        is_text: whether it holds strings or bytes.
    """
    if "quantiles" not in kinds:
        return kinds[0]
    if is_text:
        return "quantiles" if operators - {EQUAL} and len(column.distinct) > 1 else kinds[0]
    return "quantiles" if _is_skewed(column) else kinds[0]


def _is_skewed(column: SampledColumn) -> bool:
    """Returns whether most values lie in a small part of the column's range."""
    values = column.values[~column.nulls].astype(np.float64)
    values = values[np.isfinite(values)]
    if len(values) == 0 or values.min() == values.max():
        return False
    counts, _ = np.histogram(values, bins=_SKEW_PARTS)
    return bool(counts.max() > _SKEWED * len(values))


def unusable_note(workload: Workload) -> str:
    """Returns a sentence about the first condition that cannot select files; '' if there is none."""
    unusable = workload.unusable
    if not unusable:
        return ""
    number, condition = unusable[0]
    others = f" So it is with {len(unusable) - 1} more." if len(unusable) > 1 else ""
    return f" In query {number}, {condition.text} selects no files: {condition.reason}.{others}"


def named(columns: Sequence[str], kinds: Mapping[str, tuple[str, bool]]) -> str:
    """Returns columns as ``use.index`` takes them.

    Args:
        columns: names.
        kinds: per column its transformation, and whether that is its type's default.
    """
    return ",".join(name if kinds[name][1] else f"{name}:{kinds[name][0]}" for name in columns)
