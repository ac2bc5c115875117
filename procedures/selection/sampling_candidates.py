"""The files that a sample reads in part, which ``SamplingOverheadReduction`` chooses from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from catalog.files.arrays import UNKNOWN, Flags, Floats, sums
from catalog.files.file_table import FileTable
from otree.packing import band_limits, weight_bands
from otree.revision import Revision
from otree.weight import MAX_WEIGHT, MIN_WEIGHT, WeightRange
from procedures.groups.cutter import first_piece
from procedures.groups.group import InputFile

_DECADES = 4
_ESTIMATE = 20_000
# A rewrite closes files at 1.9 targets of rows, whose bytes differ. Larger files than this had another target.
OVERSIZED = 3.0


def first_unsampled(fraction: float) -> int:
    """The smallest weight that a sample of a fraction leaves out."""
    taken = WeightRange.of_sample(0.0, fraction)
    return MIN_WEIGHT if taken is None else taken.last + 1


def limits_for(fraction: float, fractions: Sequence[float] = ()) -> list[int]:
    """The weights below which rows are counted: the ends of bands and of the sample, ascending, the largest last.

    Args:
        fraction: the sample.
        fractions: samples for which bands end.
    """
    return sorted({*band_limits(_DECADES, fractions), first_unsampled(fraction), MAX_WEIGHT + 1})


@dataclass(frozen=True)
class SampledWeights:
    """A sample as weights.

    Attributes:
        fraction: the sample.
        fractions: samples for which bands end.
        end: the smallest weight that the sample leaves out.
        band_end: the smallest weight at or above it at which a band may end.
        limits: see ``limits_for``.
    """

    fraction: float
    fractions: tuple[float, ...]
    end: int
    band_end: int
    limits: tuple[int, ...]

    @classmethod
    def of(cls, fraction: float, fractions: tuple[float, ...] = ()) -> SampledWeights:
        """The weights of a sample of a fraction."""
        end = first_unsampled(fraction)
        limits = (*band_limits(_DECADES, fractions), MAX_WEIGHT + 1)
        band_end = next(limit for limit in limits if limit >= end)
        return cls(fraction, fractions, end, band_end, tuple(limits_for(fraction, fractions)))


@dataclass(frozen=True)
class Overhead:
    """Files that a sample reads in part, together; the estimate is that rows are spread evenly over a block's weights.

    Attributes:
        files: how many.
        bytes: their size.
        below: rows with a weight below each of the limits.
        writes: how many writes they are of.
        can_change: whether a rewrite may lay any of them out in another way, however few writes they are of.
        of_revision: rows of the whole revision.
    """

    files: int
    bytes: int
    below: tuple[float, ...]
    writes: int
    can_change: bool
    of_revision: int

    def gain(self, sampled: SampledWeights, target_bytes: int) -> float:
        """The share of these files that a sample no longer reads once they are rewritten together; pure.

        Args:
            sampled: the sample.
            target_bytes: size of the files that would be written.
        """
        rows = self.below[-1] if self.below else 0.0
        # What one write laid out, another would lay out the same way.
        if rows < 1 or (self.writes < 2 and not self.can_change):
            return 0.0
        limits, end = list(sampled.limits), sampled.end
        counts = np.diff(np.array([0.0, *self.below])) * (_ESTIMATE / rows)
        starts = np.array([MIN_WEIGHT, *limits[:-1]], dtype=np.int64)
        sample = np.repeat(starts, np.maximum(np.rint(counts), 0).astype(np.int64)).astype(np.int32)
        target_rows = max(1, int(rows * target_bytes / max(self.bytes, 1)))
        beside = max(0, self.of_revision - int(rows))
        bands = weight_bands(sample, int(rows), target_rows, beside, fractions=sampled.fractions)
        last = max(band_end for first, band_end in bands if first < end)
        return 1.0 - self.below[limits.index(last)] / rows if last in limits else 0.0


class Candidates:
    """The files of one revision that a sample reads for a part of their rows only.

    That is so of a file with an optimizable block (the sample ends inside its weights, and some of them are above what
    the cube keeps today), of one that mixes blocks that are sampled and blocks that are not, and of one whose weights
    reach beyond the sample and the band that a rewrite would end there.

    A file is settled when its write was as large as one of an iteration's, so that no row is rewritten run after run;
    see decision 023. A file that is much larger than the target was written for another target, and is not settled.

    Args:
        files: the candidates alone.
        can_change: whether each has an optimizable block, was not laid out by us, or is larger than files are today.
        settled: see ``Candidates``.
        below: estimated rows with a weight below each of the limits; a row per file.
        sampled: the sample.
        of_revision: rows of the whole revision.
    """

    def __init__(
        self,
        files: FileTable,
        can_change: Flags,
        settled: Flags,
        below: Floats,
        sampled: SampledWeights,
        of_revision: int,
    ) -> None:
        self._of_revision = of_revision
        self._files = files
        self._can_change = can_change
        self._settled = settled
        self._below = below
        self._sampled = sampled

    @classmethod
    def of(
        cls,
        whole: FileTable,
        files: FileTable,
        revision: Revision,
        sampled: SampledWeights,
        bytes_per_iter: int,
        target_bytes: int,
    ) -> Candidates:
        """Finds the candidates in a version.

        Args:
            whole: all files of the version.
            files: those that may be chosen.
            revision: their revision.
            sampled: the sample.
            bytes_per_iter: see ``Candidates``.
            target_bytes: size of the files that are written today.
        """
        number = revision.revision_id
        all_blocks = whole.blocks
        in_revision = whole.revision == number
        all_blocks = all_blocks.where(in_revision[all_blocks.file])
        # Cubes and writes have the same numbers in all columns of a version.
        threshold = np.full(len(all_blocks.cube_ids), MAX_WEIGHT, np.int64)
        np.minimum.at(threshold, all_blocks.cube, all_blocks.max_weight)
        write_bytes = sums(whole.write[in_revision], int(whole.write.max(initial=-1)) + 1, whole.size[in_revision])

        blocks = files.blocks_of(number)
        first = blocks.min_weight
        band_end = files.band_end[blocks.file]
        known = band_end != UNKNOWN
        in_band = np.minimum(blocks.max_weight, np.where(known, band_end - 1, MAX_WEIGHT))
        last = np.maximum(in_band, first)
        is_sampled = first < sampled.end
        is_optimizable = is_sampled & (last >= sampled.end) & (last > threshold[blocks.cube])

        def any_block(flags: Flags) -> Flags:
            of_file: Flags = np.bincount(blocks.file[flags], minlength=len(files)) > 0
            return of_file

        below = np.zeros((len(files), len(sampled.limits)))
        for i, limit in enumerate(sampled.limits):
            share = np.clip((limit - first) / (last - first + 1), 0.0, 1.0)
            np.add.at(below[:, i], blocks.file, blocks.elements * share)
        optimizable, ours = any_block(is_optimizable), any_block(known)
        oversized = files.size > OVERSIZED * target_bytes
        beyond = any_block(is_sampled) & any_block(last >= sampled.band_end)
        chosen = optimizable | beyond | (any_block(is_sampled) & any_block(~is_sampled))
        settled = ours & ~optimizable & ~oversized & (write_bytes[files.write] * 2 >= bytes_per_iter)
        return cls(
            files.where(chosen),
            (optimizable | ~ours | oversized)[chosen],
            settled[chosen],
            below[chosen],
            sampled,
            int(all_blocks.elements.sum()),
        )

    def live(self, files: FileTable) -> Candidates:
        """Those that a later version still has.

        Args:
            files: the files of that version that may be chosen.
        """
        live = set(zip(files.path, files.deletion_vector, strict=True))
        pairs = zip(self._files.path, self._files.deletion_vector, strict=True)
        return self._where(np.fromiter((pair in live for pair in pairs), np.bool_, len(self._files)))

    def unsettled(self) -> Candidates:
        """Those that are not settled."""
        return self._where(~self._settled)

    def total(self) -> Overhead:
        """All of them together."""
        return Overhead(
            len(self._files),
            int(self._files.size.sum()),
            tuple(float(total) for total in self._below.sum(axis=0)),
            len(np.unique(self._files.write)),
            bool(self._can_change.any()),
            self._of_revision,
        )

    def first(self, most_bytes: int) -> Candidates:
        """The first of them, those with the most rows that the sample does not want first.

        Args:
            most_bytes: bytes after which no further file is taken.
        """
        needless = self._below[:, -1] - self._below[:, self._sampled.limits.index(self._sampled.end)]
        order = np.argsort(-np.rint(needless), kind="stable")
        taken = np.zeros(len(order), np.bool_)
        taken[order[: first_piece(self._files.size[order], most_bytes)]] = True
        return self._where(taken)

    def inputs_in(self, files: FileTable) -> tuple[InputFile, ...]:
        """They as files to rewrite, those with the most rows that the sample does not want first.

        Args:
            files: the files of a version, of which all of them are.
        """
        needless = self._below[:, -1] - self._below[:, self._sampled.limits.index(self._sampled.end)]
        order = np.argsort(-np.rint(needless), kind="stable")
        return InputFile.of(files, [files.position_of(path) for path in self._files.path[order]])

    def _where(self, keep: Flags) -> Candidates:
        return Candidates(
            self._files.where(keep),
            self._can_change[keep],
            self._settled[keep],
            self._below[keep],
            self._sampled,
            self._of_revision,
        )
