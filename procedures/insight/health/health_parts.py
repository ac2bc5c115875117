"""The parts of a table's health, from facts about one version; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from catalog.files.arrays import UNKNOWN, Flags, Integers
from catalog.files.file_table import FileTable
from catalog.settings.strategy_options import DEFAULT_BYTES_PER_ITER
from otree.overfull import is_overfull
from otree.revision import Revision
from procedures.groups.judge import Judge
from procedures.groups.overfull_cubes import overfull_cube
from procedures.groups.read_costs import Regions
from procedures.insight.health.reads import BOX_1, JOIN_1, OPEN_COST, SAMPLE_1, SAMPLE_10, ReadCost, read_costs
from procedures.insight.health.remedy import Advice, Remedy, sql_text
from procedures.insight.health.score import Part


@dataclass(frozen=True, eq=False)
class HealthFacts:
    """The facts from which the health of a table is computed.

    Attributes:
        name: the table, as statements name it.
        files: the files of the version, with the ranges of the indexed columns.
        newest: the newest revision; None if nothing was indexed.
        is_indexed: whether the index skips each file by weight.
        cube_rows: rows of each cube of the newest revision; empty without one.
        has_index_columns: whether the table's properties name index columns.
        target_bytes: bytes of a file of a fresh layout.
        target_read_cost: what reads may cost in proportion to a fresh layout before files are merged.
        commits: number of commits after the last checkpoint.
        commit_bytes: bytes of these commits, which each load of the version reads.
        failures: number of groups that failed within a week.
        clustering: columns of CLUSTER BY.
        fractions: samples for which files of a fresh index end, by the table's properties.
        is_outdated: whether the properties ask for another index than the newest revision is.
    """

    name: str
    files: FileTable
    newest: Revision | None
    is_indexed: Flags
    cube_rows: Integers
    has_index_columns: bool
    target_bytes: int
    target_read_cost: float
    commits: int
    commit_bytes: int
    failures: int
    clustering: tuple[str, ...] = ()
    fractions: tuple[float, ...] = ()
    is_outdated: bool = False

    @cached_property
    def has_costly_reads(self) -> bool:
        """Whether reads of the newest revision cost more than the target, below which no files are merged."""
        files = self.files.where(self.files.revision == (self.newest.revision_id if self.newest else UNKNOWN))
        if not files.size.sum():
            return False
        return Judge(Regions.of(files), self.target_bytes, fractions=self.fractions).cost > self.target_read_cost

    @cached_property
    def can_split_cubes(self) -> bool:
        """Whether there is an overfull cube that a rewrite is expected to relieve."""
        cube = overfull_cube(self.files, self.newest, DEFAULT_BYTES_PER_ITER) if self.newest else None
        return cube is not None and cube.is_relieved

    def advice(self, remedy: Remedy) -> Advice:
        """Returns a remedy with its statement for the table.

        Args:
            remedy: one that needs no more than the table's name.
        """
        return Advice(remedy, _STATEMENTS[remedy].format(literal=sql_text(self.name), name=self.name))


_STATEMENTS = {
    # Only the recorded error shows what a failed group needs, so the advice is a query of it and not a call.
    Remedy.FAILURES: "SELECT * FROM {name}.optimizations WHERE state = 'failed'",
    Remedy.CLUSTERING: "ALTER TABLE {name} CLUSTER BY NONE",
    Remedy.OPTIMIZE: "CALL use.optimize({literal})",
    Remedy.SPLIT: "CALL use.optimize({literal}, strategy => 'LeveledCompaction')",
    Remedy.REWRITE: "CALL use.optimize({literal}, revision_rewrite => true)",
    Remedy.MERGE: "CALL use.optimize({literal}, strategy => 'SizeTieredClustering')",
    Remedy.STATISTICS: "CALL use.consolidate_log({literal}, modes => array('file_metadata'))",
    Remedy.DELETES: "CALL use.compact({literal})",
    Remedy.LOG: "CALL use.consolidate_log({literal})",
}


def parts_of(facts: HealthFacts) -> list[Part]:
    """Returns the parts of a table's health.

    Args:
        facts: about the table.
    """
    return [*_index_parts(facts), *_file_parts(facts), *_log_parts(facts)]


# ------------------------------------------------------------------------------------------------------------ index


def _index_parts(facts: HealthFacts) -> list[Part]:
    files, newest = facts.files, facts.newest
    if newest is None or not len(files):
        return _without_index(facts)
    costs = read_costs(files, facts.is_indexed, facts.target_bytes, facts.fractions)
    if not costs:
        return []
    waiting = _waiting(files, facts.is_indexed)
    fair = _fair_costs(facts, waiting, costs)
    unindexed = files.revision == 0
    optimize = facts.advice(Remedy.OPTIMIZE)
    older = (files.revision > 0) & ~facts.is_indexed
    reads = facts.advice(Remedy.REWRITE) if older.any() else optimize
    extra = [cost.unindexed_bytes - cost.fresh_bytes * _share(files, unindexed) for cost in costs.values()]
    parts = [
        Part("unindexed_share", _share(files, unindexed), _bytes(float(np.mean(extra))), optimize),
        Part("fragmentation", fragmentation(files, newest), None, optimize),
        Part(
            "overlap",
            _ratio(costs[BOX_1].files, costs[BOX_1].fresh_files),
            _opened(costs[BOX_1]),
            reads,
            _ratio(costs[BOX_1].files, fair[BOX_1].files),
        ),
    ]
    parts += [
        Part(
            name,
            _ratio(costs[name].bytes, costs[name].fresh_bytes),
            _beyond(costs[name]),
            reads,
            _ratio(costs[name].bytes, fair[name].bytes),
        )
        for name in (SAMPLE_1, SAMPLE_10, BOX_1, JOIN_1)
        if name in costs
    ]
    overfull = sum(is_overfull(rows, newest.desired_cube_size) for rows in facts.cube_rows.tolist())
    split = facts.advice(Remedy.SPLIT)
    return [*parts, Part("overfull_cubes", overfull / max(len(facts.cube_rows), 1), None, split)]


def _without_index(facts: HealthFacts) -> list[Part]:
    """The part of a table with index columns and no indexed file; a plain table has no such part."""
    if not facts.has_index_columns or not len(facts.files):
        return []
    size, optimize = int(facts.files.size.sum()), facts.advice(Remedy.OPTIMIZE)
    # Every sample and box reads everything. Boxes may skip files by statistics, which is not known from a list of index
    # columns alone.
    reads = {SAMPLE_1: 0.01, SAMPLE_10: 0.1, BOX_1: 0.01}
    # They cost the same as before index columns were declared.
    parts = [Part(name, 1.0 / share, _bytes(size * (1.0 - share)), optimize, 1.0) for name, share in reads.items()]
    return [Part("unindexed_share", 1.0, size, optimize), *parts]


def _waiting(files: FileTable, is_indexed: Flags) -> Flags:
    """Whether each file is older than any indexed one, so that the first indexing has not reached it yet."""
    began = files.modification_time[is_indexed].min(initial=np.iinfo(np.int64).max)
    waiting: Flags = (files.revision == 0) & (files.modification_time < began)
    return waiting


@dataclass(frozen=True)
class _Fair:
    """The cost that a read may have: that of a fresh index, and in files that wait for it, that without an index."""

    bytes: float
    files: float


def _fair_costs(facts: HealthFacts, waiting: Flags, costs: Mapping[str, ReadCost]) -> dict[str, _Fair]:
    """Returns what each read may cost while the table is indexed for the first time.

    Args:
        facts: about the table.
        waiting: whether each file waits for the first indexing.
        costs: of the reads over all files.
    """
    if not waiting.any():
        return {name: _Fair(cost.fresh_bytes, cost.fresh_files) for name, cost in costs.items()}
    files, target, fractions = facts.files, facts.target_bytes, facts.fractions
    plain = read_costs(files.where(waiting), np.zeros(int(waiting.sum()), np.bool_), target, fractions)
    if waiting.all():  # statements have taken the index off every file
        return {name: _Fair(cost.bytes, cost.files) for name, cost in plain.items()}
    others = read_costs(files.where(~waiting), facts.is_indexed[~waiting], target, fractions)
    return {
        name: _Fair(others[name].fresh_bytes + plain[name].bytes, others[name].fresh_files + plain[name].files)
        for name in costs
    }


def _share(files: FileTable, chosen: Flags) -> float:
    return float(files.size[chosen].sum() / max(int(files.size.sum()), 1))


def unindexed_share(files: FileTable) -> float:
    """Returns the share of the bytes in unindexed files.

    Args:
        files: the files of a version.
    """
    return _share(files, files.revision == 0)


def fragmentation(files: FileTable, newest: Revision) -> float:
    """Returns the share of the newest revision's blocks that a rewrite would merge: of one cube, and several writes.

    Args:
        files: the files of a version.
        newest: its newest revision.
    """
    blocks = files.blocks
    ours = files.revision[blocks.file] == newest.revision_id
    cube, write = blocks.cube[ours], files.write[blocks.file[ours]]
    if not len(cube):
        return 0.0
    pairs = np.unique(np.stack([cube, write]), axis=1).shape[1]
    return 1.0 - len(np.unique(cube)) / int(pairs)


def _ratio(cost: float, fresh: float) -> float:
    return cost / max(fresh, 1.0)


def _beyond(cost: ReadCost) -> int:
    return _bytes(cost.bytes - cost.fresh_bytes)


def _opened(cost: ReadCost) -> int:
    return _bytes((cost.files - cost.fresh_files) * OPEN_COST)


def _bytes(number: float) -> int:
    return max(0, round(number))


# ------------------------------------------------------------------------------------------------------- files, log


def _file_parts(facts: HealthFacts) -> list[Part]:
    files = facts.files
    # The layout decides about the size of indexed files.
    plain = files.where(files.revision == 0)
    _, partition = np.unique(plain.partition, return_inverse=True)
    size = np.bincount(partition, plain.size) if len(plain) else np.zeros(0)
    needed = float(np.maximum(size / facts.target_bytes, 1.0).sum())
    merging = facts.advice(Remedy.OPTIMIZE if facts.has_index_columns else Remedy.MERGE)
    ratio = len(plain) / needed if needed else 0.0
    hidden = int(files.deleted[files.deleted != UNKNOWN].sum())
    rows = int(files.rows[files.rows != UNKNOWN].sum()) + hidden
    with_vector = files.deletion_vector != ""
    share = hidden / rows if rows else 0.0
    deleted_bytes = round(
        float(files.size[with_vector].sum()) * min(share / max(_share(files, with_vector), 1e-9), 1.0)
    )
    return [
        Part("small_files", ratio, _bytes((len(plain) - needed) * OPEN_COST), merging),
        Part("deleted_rows", share, deleted_bytes, facts.advice(Remedy.DELETES)),
    ]


def _log_parts(facts: HealthFacts) -> list[Part]:
    log = Part("log_length", float(facts.commits), facts.commit_bytes, facts.advice(Remedy.LOG))
    return [log, Part("failures", float(facts.failures), None, facts.advice(Remedy.FAILURES))]
