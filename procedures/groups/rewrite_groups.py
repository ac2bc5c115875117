"""The groups of a consolidation plan as a rewrite can do them: bounded, with the files that they become; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from catalog.files.file_table import UNKNOWN, Floats, Integers
from procedures.groups.box_sweep import depths, has_overlap, sweep_dimension
from procedures.groups.boxes import Boxes
from procedures.groups.consolidation_plan import (
    LARGE_MULTIPLE,
    PlanGroup,
    Reason,
    consolidation_plan,
)
from procedures.groups.cutter import Limits, pieces
from procedures.groups.group_cuts import Parts, parts_of

# A group has files of at most so many times the desired size.
MOST_FILES_OUT = 4
MOST_FILES = 10_000


@dataclass(frozen=True)
class RewriteGroup:
    """Files that one commit may replace.

    Attributes:
        reason: ``OVERLAP`` if some of the files overlap, ``OVERLAP_CUT`` if they are a part of a set that is too large,
            ``SMALL`` or ``LARGE``.
        runs: positions of the files, in their order; each run becomes one file, or several if it is one large file.
        bytes: of the files.
        files_out: how many files are expected instead.
        depth_before: how many files of the whole set a point lies in, at most.
        depth_after: the same when all groups of the set are rewritten. The parts of a large file count as if each had
            the values of the whole file.
        crossing: for parts of a set that is too large: how many boxes reach across the cuts.
        parts: how many parts the set has.
        dimensions: of the cuts; -1 stands for the order of the files.
    """

    reason: str
    runs: tuple[tuple[int, ...], ...]
    bytes: int
    files_out: int
    depth_before: int
    depth_after: int
    crossing: int = 0
    parts: int = 1
    dimensions: frozenset[int] = frozenset()


def rewrite_groups(files: Boxes, rows: Integers, desired_bytes: int, limits: Limits) -> Iterator[RewriteGroup]:
    """The groups of a plan, none of which is larger than the limits allow.

    Large files of a set are groups of their own. A file that would be alone in its run and is not large is left as it
    is. So each group has fewer files after it than before, or divides a large file.

    Args:
        files: the files, in the order of time.
        rows: live rows of each, ``UNKNOWN`` where the log does not tell; such a file cannot be divided.
        desired_bytes: size that files should have.
        limits: of a group.
    """
    for group in consolidation_plan(files, desired_bytes):
        yield from _bounded(group, files, rows, desired_bytes, limits)


def _bounded(
    group: PlanGroup, files: Boxes, rows: Integers, desired_bytes: int, limits: Limits
) -> Iterator[RewriteGroup]:
    members: Integers = np.array(group.files, np.int64)
    size = files.size[members]
    is_large = (size > LARGE_MULTIPLE * desired_bytes) & (rows[members] > 1) & (rows[members] != UNKNOWN)
    large, rest = members[is_large], members[~is_large]
    cut = _NO_PARTS
    if len(rest):
        cut = parts_of(files.size[rest], files.low[rest], files.high[rest], limits)
    runs_of_parts = [_runs(files, rest[part], desired_bytes) for part in cut.members]
    divided = {int(n): _divided_into(int(files.size[n]), int(rows[n]), desired_bytes) for n in large}
    boxes = [run for runs in runs_of_parts for run in runs] + [(n,) for n in divided for _ in range(divided[n])]
    after = _depth(files, boxes)

    def made(reason: str, runs: Sequence[tuple[int, ...]], files_out: int) -> RewriteGroup:
        total = int(sum(files.size[list(run)].sum() for run in runs))
        return RewriteGroup(
            reason,
            tuple(runs),
            total,
            files_out,
            group.depth_before,
            after,
            cut.crossing,
            len(cut.members),
            cut.dimensions,
        )

    is_cut = len(cut.members) > 1
    for runs in runs_of_parts:
        merged = [run for run in runs if len(run) > 1]
        if merged:
            yield made(_reason(group, files, merged, is_cut=is_cut), merged, len(merged))
    for position, count in divided.items():
        yield made(Reason.LARGE.value, [(position,)], count)


def _reason(group: PlanGroup, files: Boxes, runs: Sequence[tuple[int, ...]], *, is_cut: bool) -> str:
    """Why these files of a group are rewritten: those that overlap may be others of the group."""
    if group.reason is not Reason.OVERLAP:
        return str(group.reason.value)
    members = [position for run in runs for position in run]
    if not has_overlap(files.low[members], files.high[members]):
        return str(Reason.SMALL.value)
    return f"{Reason.OVERLAP.value}_CUT" if is_cut else str(Reason.OVERLAP.value)


_NO_PARTS = Parts((), 0, frozenset())


def _divided_into(size: int, rows: int, desired_bytes: int) -> int:
    return min(rows, max(2, -(-size // desired_bytes)))


def _runs(files: Boxes, members: Integers, desired_bytes: int) -> list[tuple[int, ...]]:
    """Divides files into runs of at most the desired size, each of neighbours; a larger file is alone."""
    if int(files.size[members].sum()) > desired_bytes:
        low, high = files.low[members], files.high[members]
        members = members[np.argsort(low[:, sweep_dimension(low, high)], kind="stable")]
    return [tuple(members[first:end].tolist()) for first, end in pieces(files.size[members], Limits(desired_bytes))]


def _depth(files: Boxes, runs: Sequence[tuple[int, ...]]) -> int:
    """How many of the boxes around runs a point lies in, at most: the smallest number over the dimensions."""
    corners = _around(files.low, runs, np.min), _around(files.high, runs, np.max)
    if np.isnan(corners[0]).any() or np.isnan(corners[1]).any():
        return len(runs)
    one: Integers = np.zeros(len(runs), np.int64)
    low, high = corners
    return min(int(depths(one, 1, low[:, n], high[:, n])[0]) for n in range(low.shape[1]))


def _around(corners: Floats, runs: Sequence[tuple[int, ...]], bound: Callable[..., Floats]) -> Floats:
    return np.array([bound(corners[list(run)], axis=0) for run in runs])
