"""The judge: what reads cost over the files of a revision, and what groups of these files would save; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from catalog.files.arrays import Floats, Integers
from otree.pages import PAGE_ROWS
from procedures.groups.read_costs import (
    Read,
    Regions,
    bands_at_decades,
    bands_of,
    costs_laid_out,
    costs_of_fresh_layout,
    costs_per_file,
    read_mix,
    share_below,
)

if TYPE_CHECKING:
    from procedures.groups.recorded_reads import RecordedReads

# The larger, the more the most expensive read counts.
_POWER = 8
# A single read may cost so many times the overall cost: 1.5 times a fresh layout with a target of 1.25.
_SINGLE_READ = 1.2
_SMALLEST = 1e-9


def overall(relative: Floats) -> float:
    """One number for the costs of all reads, in which expensive ones count most.

    Args:
        relative: cost of each read, in proportion to a fresh layout.
    """
    return max(_mean(relative), float(relative.max()) / _SINGLE_READ)


def slopes(relative: Floats) -> Floats:
    """How fast the overall cost changes with the cost of each read; see ``overall``.

    Args:
        relative: cost of each read, in proportion to a fresh layout.
    """
    mean = max(_mean(relative), _SMALLEST)
    if mean * _SINGLE_READ < relative.max():
        return np.where(relative == relative.max(), 1.0 / _SINGLE_READ, 0.0)
    return np.asarray((np.maximum(relative, 0.0) / mean) ** (_POWER - 1) / len(relative), np.float64)


def _mean(relative: Floats) -> float:
    return float(np.mean(np.maximum(relative, 0.0) ** _POWER) ** (1 / _POWER))


@dataclass(frozen=True, eq=False)
class Merges:
    """Groups of files, each of which would be laid out together. One entry per group.

    Attributes:
        members: positions of the files, group after group.
        starts: where the files of each group begin among them.
        size: bytes of each group.
        saved: what each read of the mix would save, in bytes and opened files counted as bytes; shape (reads, groups).
        worth: what a group saves per byte. Of the declared mix, the mean share of a fresh layout's cost, per share of
            the revision's bytes; of recorded reads, the bytes that they would have saved, per byte.
    """

    members: Integers
    starts: Integers
    size: Floats
    saved: Floats
    worth: Floats


@dataclass(frozen=True, eq=False)
class Judge:
    """Judges groups of the files of a revision by a mix of reads.

    Attributes:
        files: all files of the revision.
        target_bytes: size of the files that are written.
        page_rows: rows of a page.
        fractions: samples for which bands end.
        recorded: the reads of the past; None = the declared mix counts.
    """

    files: Regions
    target_bytes: float
    page_rows: int = PAGE_ROWS
    fractions: Sequence[float] = ()
    recorded: RecordedReads | None = None

    @cached_property
    def reads(self) -> tuple[Read, ...]:
        """The reads by which groups are judged."""
        return self.recorded.reads if self.recorded else read_mix(self.files.low.shape[1])

    @property
    def cost(self) -> float:
        """What the mix costs today, in proportion to a fresh layout."""
        return self.overall(self.today)

    def overall(self, costs: Floats) -> float:
        """One number for the costs of all reads, in proportion to a fresh layout.

        Of the declared mix, expensive reads count most. Recorded ones count by their bytes.

        Args:
            costs: of each read.
        """
        if self.recorded:
            return float(np.maximum(costs, 0.0).sum() / max(self.fresh.sum(), _SMALLEST))
        return overall(costs / self.fresh)

    @cached_property
    def limits(self) -> list[float]:
        """Where the bands of a fresh layout begin, as fractions, and 1."""
        return [*(share_below(first) for first, _ in self._fresh_bands), 1.0]

    @cached_property
    def target_rows(self) -> int:
        """Rows of a file of the target size."""
        return max(1, int(float(self.files.rows.sum()) * self.target_bytes / float(self.files.size.sum())))

    @cached_property
    def fresh(self) -> Floats:
        """What each read costs over the same rows laid out anew.

        A table that has just become so large that its samples would get further bands is not merged for these.
        """
        rows, size = float(self.files.rows.sum()), float(self.files.size.sum())
        bands = bands_at_decades(self._fresh_bands, self.fractions)
        costs = costs_of_fresh_layout(
            rows, size, bands, self.reads, self.target_rows, self.page_rows, self.files.occupied()
        )
        return costs.weighed(self.target_bytes)

    @cached_property
    def today(self) -> Floats:
        """What each read costs over the files as they are."""
        return np.asarray(self.per_file.sum(axis=1), np.float64)

    @cached_property
    def per_file(self) -> Floats:
        """What each file costs each read; shape (reads, files)."""
        return costs_per_file(self.files, self.reads, self.page_rows).weighed(self.target_bytes)

    def merges(self, members: Integers, starts: Integers) -> Merges:
        """Judges groups of files of about the same size within one range of weights, each of which is laid out anew.

        Args:
            members: positions of the files, group after group.
            starts: where the files of each group begin among them, ascending.
        """
        files = self.files.take(members)
        before = np.add.reduceat(self.per_file[:, members], starts, axis=1)
        after = self._laid_out(files, starts)
        size = np.add.reduceat(files.size, starts)
        if self.recorded is None:
            worth = ((before - after) / self.fresh[:, None]).mean(axis=0) * float(self.files.size.sum()) / size
            return Merges(members, starts, size, before - after, worth)
        paid = np.add.reduceat(
            self.per_file[:, members] * self.recorded.since_overlap(members, starts, files.write), starts, axis=1
        )
        share = np.clip((before - after) / np.maximum(before, _SMALLEST), 0.0, 1.0)
        return Merges(members, starts, size, before - after, (paid * share).sum(axis=0) / size)

    def _laid_out(self, files: Regions, starts: Integers) -> Floats:
        """What each read costs over the files that groups become; shape (reads, groups)."""
        total, usual = float(self.files.rows.sum()), float(np.median(np.add.reduceat(files.rows, starts)))
        first, end = float(files.first.min()), float(files.end.max())
        bands = bands_of(usual, total, self.target_rows, self.fractions, first, end)
        costs = costs_laid_out(files, starts, bands, self.reads, self.target_rows, total, self.page_rows)
        return costs.weighed(self.target_bytes)

    @cached_property
    def _fresh_bands(self) -> list[tuple[int, int]]:
        rows = float(self.files.rows.sum())
        return bands_of(rows, rows, self.target_rows, self.fractions)
