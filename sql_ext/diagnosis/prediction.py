"""What queries read today, and what they would read with an index, as shares of the bytes of the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from catalog.predicates.conditions import AllOf, Comparison, leaves
from procedures.insight.recommendation.candidates import ranked_candidates
from procedures.insight.recommendation.simulated_layout import SimulatedFiles, TableSample, indexed_files
from procedures.insight.recommendation.workload import Workload, WorkloadQuery
from sql_ext.diagnosis.assumed_queries import SHARE, box_queries, range_queries
from sql_ext.diagnosis.file_bounds import FileBounds
from sql_ext.diagnosis.parquet_pages import Pages

# The files that a small sample reads have few rows, whose values repeat less: a row takes 1.03 to 1.26 times the bytes
# in the tables of bench/diagnosis.py.
_SMALL_FILES = 1.1


@dataclass(frozen=True)
class ReadShares:
    """Shares of the bytes of the table that a kind of read needs, as a mean over several places.

    Attributes:
        today: in the files that the log does not exclude.
        today_with_pages: the same, less the pages that page indexes exclude; None if no footer that was read has them.
        indexed: in the files of an index; None without a recommendation.
    """

    today: float
    today_with_pages: float | None
    indexed: float | None

    @property
    def best_today(self) -> float:
        """What is read today at best."""
        return self.today if self.today_with_pages is None else self.today_with_pages


@dataclass(frozen=True, eq=False)
class PresentLayout:
    """The files as they are.

    Attributes:
        files: the live files.
        pages: per column the place of a file in ``files`` and its pages.
        sample_share: share of the bytes that a sample of 1 % reads.
    """

    files: FileBounds
    pages: Mapping[str, Sequence[tuple[int, Pages]]]
    sample_share: float

    def share_read(self, query: WorkloadQuery) -> float:
        """Returns the share of the bytes in the files that a query opens."""
        kept = self.files.share_of(self.files.may_match(query.condition))
        return kept if query.fraction >= 1.0 else min(kept, self.sample_share)

    def share_of_pages(self, queries: Sequence[WorkloadQuery]) -> float | None:
        """Returns the mean share with pages excluded; None if the page indexes of its columns are not known.

        The files whose page indexes were read stand for the others.
        """
        known = any(name in self.pages for query in queries for name in _ranges(query))
        if not known:
            return None
        read = rows = 0.0
        for query in queries:
            kept = self.files.may_match(query.condition)
            of_file: dict[int, float] = {}
            for name, (first, last) in _ranges(query).items():
                for file, pages in self.pages.get(name, ()):
                    if kept[file]:
                        # Columns whose pages differ read the rows that all of them keep.
                        share = pages.share_within(first, last)
                        of_file[file] = min(of_file.get(file, 1.0), share)
            weights = {file: float(max(self.files.rows[file], 1)) for file in of_file}
            read += sum(share * weights[file] for file, share in of_file.items())
            rows += sum(weights.values())
        factor = read / rows if rows else 1.0
        return factor * sum(map(self.share_read, queries)) / len(queries)

    def best_share(self, queries: Sequence[WorkloadQuery]) -> float:
        """Returns the mean share that queries read, with pages excluded where they are known."""
        with_pages = self.share_of_pages(queries)
        return sum(map(self.share_read, queries)) / len(queries) if with_pages is None else with_pages


def _ranges(query: WorkloadQuery) -> dict[str, tuple[Any, Any]]:
    """The closed range of each column of a conjunction of comparisons; other comparisons do not narrow it."""
    ends: dict[str, list[Any]] = {}
    for leaf in leaves(query.condition):
        if isinstance(leaf, Comparison) and leaf.values and leaf.operator in (">=", "<="):
            ends.setdefault(leaf.column, [None, None])[leaf.operator == "<="] = leaf.values[0]
    return {name: (low, high) for name, (low, high) in ends.items() if low is not None and high is not None}


@dataclass(frozen=True, eq=False)
class Prediction:
    """Index columns and what they change.

    Attributes:
        columns: names; empty if no index saves enough.
        workload_today: share that the workload reads today.
        workload_indexed: share that it would read; that of today without index columns.
        files: the simulated files; None without index columns.
        places: number of ranges and boxes of which means are taken.
    """

    columns: tuple[str, ...]
    workload_today: float
    workload_indexed: float
    files: SimulatedFiles | None
    places: int

    def shares(self, layout: PresentLayout, queries: Sequence[WorkloadQuery]) -> ReadShares:
        """Returns what some queries read.

        Args:
            layout: the present files.
            queries: at least one, of equal weight.
        """
        indexed = None if self.files is None else sum(map(self.files.share_read, queries)) / len(queries)
        today = sum(map(layout.share_read, queries)) / len(queries)
        return ReadShares(today, layout.share_of_pages(queries), indexed)

    def range_shares(self, layout: PresentLayout, sample: TableSample, name: str) -> ReadShares | None:
        """Returns what ranges of a column with 1 % of its values read; None for a column without values."""
        queries = range_queries(name, sample.columns[name], self.places)
        return self.shares(layout, queries) if queries else None

    def box_shares(self, layout: PresentLayout, sample: TableSample) -> ReadShares | None:
        """Returns what boxes of all index columns read; None without index columns."""
        queries = box_queries(sample.columns, self.columns, self.places) if self.columns else ()
        return self.shares(layout, queries) if queries else None

    def sample_shares(self, layout: PresentLayout) -> ReadShares:
        """Returns what a sample of 1 % reads."""
        found = self.shares(layout, (sample_query(),))
        return found if found.indexed is None else replace(found, indexed=min(found.indexed * _SMALL_FILES, 1.0))


def sample_query() -> WorkloadQuery:
    """Returns a query that samples 1 % of the rows."""
    return WorkloadQuery(1, AllOf(()), SHARE)


def predict(
    layout: PresentLayout, sample: TableSample, workload: Workload, indexable: Sequence[str], places: int
) -> Prediction:
    """Chooses index columns for a workload by a simulation on sampled rows.

    Args:
        layout: the present files.
        sample: a sample of the table.
        workload: the queries.
        indexable: columns that may be indexed.
        places: number of ranges and boxes of which means are taken.

    Returns:
        Without index columns if none saves enough; ``candidates`` has the limits.
    """
    today = _mean(layout, workload)
    if not workload.queries or sample.rows <= sample.target_rows:
        return Prediction((), today, today, None, places)
    best = ranked_candidates(sample, workload, indexable, today)[0]
    if not best.columns:
        return Prediction((), today, today, None, places)
    return Prediction(best.columns, today, best.share, indexed_files(sample, best.columns), places)


def _mean(layout: PresentLayout, workload: Workload) -> float:
    """The weighted mean over the queries; those of the same columns share what is known of their pages."""
    groups: dict[tuple[Any, ...], list[WorkloadQuery]] = {}
    for query in workload.queries:
        groups.setdefault((tuple(sorted(_ranges(query))), query.weight, query.fraction), []).append(query)
    total = sum(query.weight for query in workload.queries)
    read = sum(layout.best_share(group) * group[0].weight * len(group) for group in groups.values())
    return read / total if total else 1.0
