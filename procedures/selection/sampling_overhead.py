"""SamplingOverheadReduction: files that a sample reads for the sake of a part of their rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from catalog.counted_nouns import agreeing, counted
from catalog.errors import InvalidArgumentError
from catalog.properties.index_properties import SAMPLE_FRACTIONS, SAMPLE_FRACTIONS_KEY, TARGET_FILE_BYTES
from catalog.table.snapshot import TableSnapshot
from otree.revision import Revision
from procedures.declare.declaration import Parameter
from procedures.groups.block_groups import indexed_revision
from procedures.groups.plan import FileGroup, Selection, SkippedGroup
from procedures.groups.selection_strategy import (
    SelectionSettings,
    Selector,
    Strategy,
    take_until,
)
from procedures.selection.sampled_weights import Overhead, SampledWeights
from procedures.selection.sampling_candidates import Candidates

NAME = "SamplingOverheadReduction"
# A rewrite is worth its bytes when the sample then reads less of these files by this share.
_SMALLEST_GAIN = 0.1


class SamplingOverheadReduction(Strategy):
    """Rewrites the files whose rows a sample of a fraction reads in part only, once each in a run.

    The set is computed once per run, from the first snapshot.
    """

    name: ClassVar[str] = NAME
    doc: ClassVar[str] = "Rewrites files that a sample of the given fraction reads for a part of their rows only."
    options: ClassVar[tuple[Parameter, ...]] = (
        Parameter("fraction", "DOUBLE", "The fraction that is sampled, above 0 and at most 1."),
    )

    def check_options(self, options: Mapping[str, Any]) -> None:
        """See ``Strategy.check_options``."""
        fraction = options["fraction"]
        if not 0.0 < fraction <= 1.0:
            raise InvalidArgumentError.of("fraction", fraction, "a number above 0 and at most 1")

    def begin(self, settings: SelectionSettings) -> Selector:
        """See ``Strategy.begin``."""
        return _OverheadSelector(settings)


class _OverheadSelector(Selector):
    """Remembers the files of the first snapshot, so that no row is rewritten twice in a run."""

    def __init__(self, settings: SelectionSettings) -> None:
        super().__init__(settings)
        self._candidates: Candidates | None = None

    def select(self, snapshot: TableSnapshot) -> Selection:
        """See ``Selector.select``."""
        settings = self.settings
        revision = indexed_revision(snapshot, settings.revision_id, NAME)
        if isinstance(revision, Selection):
            return revision
        latest = snapshot.latest_revision
        if latest is not None and latest.columns != revision.columns:
            return Selection(note=f"{NAME}: samples weigh rows by other columns than those of {revision.revision_id}")
        fraction, limit = settings.options["fraction"], settings.bytes_per_iter
        sampled = SampledWeights.of(fraction, SAMPLE_FRACTIONS.value(snapshot.configuration))
        target = TARGET_FILE_BYTES.value(snapshot.configuration)
        if self._candidates is None:
            self._candidates = _candidates_of(snapshot, revision, sampled, limit, target)
        remaining = self._candidates.live(snapshot)
        unsettled = remaining.unsettled()
        if unsettled.total().gain(sampled, target) < _SMALLEST_GAIN:
            too_small = remaining.total().gain(sampled, target) >= _SMALLEST_GAIN
            return _no_selection(remaining.total() if too_small else None, settings, sampled, revision.revision_id)
        first = unsettled.first(snapshot)
        by_path = {candidate.file.path: candidate for candidate in first}
        files = take_until((candidate.file for candidate in first), limit)
        chosen = unsettled.overhead_of([by_path[f.path] for f in files])
        if chosen.gain(sampled, target) < _SMALLEST_GAIN:
            return Selection(None, (_too_small(chosen, limit),))
        note = (
            f"{counted(len(files), 'file')} that a sample of {fraction:g} reads for a part of "
            f"{agreeing(len(files), 'its', 'their')} rows"
        )
        group = FileGroup(NAME, revision.revision_id, f"FRACTION_{fraction:g}", files, note)
        return Selection(group)


def _candidates_of(
    snapshot: TableSnapshot, revision: Revision, sampled: SampledWeights, bytes_per_iter: int, target_bytes: int
) -> Candidates:
    """Finds the candidates in a version; what others hold of a cube counts, whether or not it may be chosen.

    In a part of a table with too many files, only the files of the part count.
    """
    files = snapshot.file_table
    whole = snapshot.whole.file_table_if_few
    return Candidates.of(files if whole is None else whole, files, revision, sampled, bytes_per_iter, target_bytes)


def _no_selection(
    too_small: Overhead | None, settings: SelectionSettings, sampled: SampledWeights, revision_id: int
) -> Selection:
    fraction = sampled.fraction
    note = (
        f"{NAME}: revision {revision_id} has no files that a rewrite would make a sample of {fraction:g} read less of"
    )
    if too_small is not None:
        return Selection(None, (_too_small(too_small, settings.bytes_per_iter),), note)
    if sampled.end < sampled.band_end:
        note += f"; '{SAMPLE_FRACTIONS_KEY}'='{fraction:g}' lets files end there"
    return Selection(note=note)


def _too_small(overhead: Overhead, bytes_per_iter: int) -> SkippedGroup:
    note = f"bytes_per_iter = {bytes_per_iter} is too small: what it takes would be written the same way again"
    return SkippedGroup(NAME, "BYTES_PER_ITER_TOO_SMALL", overhead.files, overhead.bytes, note)
