"""Candidates of ``SamplingOverheadReduction`` as columns in memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from catalog.files.file_table import UNKNOWN, FileTable, Flags, sums
from otree.revision import Revision
from otree.weight import MAX_WEIGHT
from procedures.groups.cutter import first_piece
from procedures.groups.group import InputFile
from procedures.selection.sampled_weights import OVERSIZED, Overhead, SampledWeights


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
        below: NDArray[np.float64],
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
