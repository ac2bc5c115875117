"""SamplingOverheadReduction: files that a sample reads for the sake of a part of their rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from catalog.counted_nouns import agreeing, counted
from catalog.files.file_table import FileTable
from catalog.properties.index_properties import SAMPLE_FRACTIONS, SAMPLE_FRACTIONS_KEY
from catalog.properties.target_file_size import TARGET_FILE_BYTES
from catalog.settings.setting import SHARE, Setting
from procedures.declare.option import option
from procedures.declare.signature import Parameter
from procedures.groups.block_groups import indexed_revision
from procedures.groups.group import Relayout, SkippedGroup
from procedures.groups.strategy import Finding, SelectionSettings, Strategy, TableFiles, one_after_another
from procedures.selection.sampling_candidates import Candidates, Overhead, SampledWeights

NAME = "SamplingOverheadReduction"
FRACTION = Setting("fraction", SHARE, "The fraction that is sampled, above 0 and at most 1.")
# A rewrite is worth its bytes when the sample then reads less of these files by this share.
_SMALLEST_GAIN = 0.1


class SamplingOverheadReduction(Strategy):
    """Rewrites the files whose rows a sample of a fraction reads in part only, once each in a run.

    The set is computed once per run, from the first snapshot.
    """

    name: ClassVar[str] = NAME
    doc: ClassVar[str] = "Rewrites files that a sample of the given fraction reads for a part of their rows only."
    options: ClassVar[tuple[Parameter, ...]] = (option(FRACTION, required=True),)

    def groups(self, table: TableFiles, settings: SelectionSettings) -> Iterator[Finding]:
        """See ``Strategy.groups``; chooses among the files that the run began with, so that none is written twice."""
        snapshot = table.snapshot
        revision = indexed_revision(snapshot, settings.revision_id, NAME)
        if isinstance(revision, str):
            yield revision
            return
        latest = snapshot.latest_revision
        if latest is not None and latest.columns != revision.columns:
            yield f"{NAME}: samples weigh rows by other columns than those of {revision.revision_id}"
            return
        sampled = SampledWeights.of(settings.options[FRACTION.name], SAMPLE_FRACTIONS.value(snapshot.settings))
        target, limit = TARGET_FILE_BYTES.value(snapshot.settings), settings.bytes_per_iter
        first = table.first
        # What others hold of a cube counts, too. In a part of a table with too many files, only the part counts.
        whole = first.snapshot.whole.file_table_if_few
        candidates = Candidates.of(
            first.files if whole is None else whole, first.files, revision, sampled, limit, target
        )

        def choose(files: FileTable) -> Iterator[Finding]:
            remaining = candidates.live(files)
            unsettled = remaining.unsettled()
            if unsettled.total().gain(sampled, target) < _SMALLEST_GAIN:
                too_small = remaining.total().gain(sampled, target) >= _SMALLEST_GAIN
                yield from _none(remaining.total() if too_small else None, settings, sampled, revision.revision_id)
                return
            taken = unsettled.first(limit)
            overhead = taken.total()
            if overhead.gain(sampled, target) < _SMALLEST_GAIN:
                yield _too_small(overhead, limit)
                return
            inputs = taken.inputs_in(files)
            note = (
                f"{counted(len(inputs), 'file')} that a sample of {sampled.fraction:g} reads for a part of "
                f"{agreeing(len(inputs), 'its', 'their')} rows"
            )
            yield Relayout(NAME, revision.revision_id, f"FRACTION_{sampled.fraction:g}", inputs, note)

        yield from one_after_another(table.files, choose)


def _none(
    too_small: Overhead | None, settings: SelectionSettings, sampled: SampledWeights, revision_id: int
) -> Iterator[Finding]:
    fraction = sampled.fraction
    note = (
        f"{NAME}: revision {revision_id} has no files that a rewrite would make a sample of {fraction:g} read less of"
    )
    if too_small is not None:
        yield _too_small(too_small, settings.bytes_per_iter)
    elif sampled.end < sampled.band_end:
        note += f"; '{SAMPLE_FRACTIONS_KEY}'='{fraction:g}' lets files end there"
    yield note


def _too_small(overhead: Overhead, bytes_per_iter: int) -> SkippedGroup:
    note = f"bytes_per_iter = {bytes_per_iter} is too small: what it takes would be written the same way again"
    return SkippedGroup(NAME, "BYTES_PER_ITER_TOO_SMALL", overhead.files, overhead.bytes, note)
