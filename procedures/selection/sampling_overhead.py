"""SamplingOverheadReduction: files that a sample reads for the sake of a part of their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from catalog.errors import InvalidArgumentError
from catalog.table.snapshot import TableSnapshot, file_levels
from otree.block import BAND_TAG
from otree.packing import band_limits, weight_bands
from otree.revision import Revision
from otree.weight import MAX_WEIGHT, MIN_WEIGHT, WeightRange
from procedures.declaration import Parameter
from procedures.optimizer.plan import FileGroup, InputFile, Selection, SkippedGroup
from procedures.selection.block_groups import indexed_revision
from procedures.selection.selection_strategy import (
    MAX_FILES_PER_GROUP,
    SelectionSettings,
    Selector,
    Strategy,
    take_until,
)

NAME = "SamplingOverheadReduction"
# A rewrite is worth its bytes when the sample then reads less of these files by this share.
_SMALLEST_GAIN = 0.1
_DECADES = 4
_ESTIMATE = 20_000


def first_unsampled(fraction: float) -> int:
    """The smallest weight that a sample of a fraction leaves out."""
    taken = WeightRange.of_sample(0.0, fraction)
    return MIN_WEIGHT if taken is None else taken.last + 1


def limits_for(fraction: float) -> list[int]:
    """The weights below which rows are counted: the ends of bands and of the sample, ascending, the largest last."""
    return sorted({*band_limits(_DECADES), first_unsampled(fraction), MAX_WEIGHT + 1})


@dataclass(frozen=True)
class Overhead:
    """Files that a sample reads in part, together; the estimate is that rows are spread evenly over a block's weights.

    Attributes:
        files: how many.
        bytes: their size.
        below: rows with a weight below each of the limits.
        writes: how many writes they are of.
        can_change: whether any has an optimizable block, or was not laid out by us.
        of_revision: rows of the whole revision.
    """

    files: int
    bytes: int
    below: tuple[float, ...]
    writes: int
    can_change: bool
    of_revision: int

    def gain(self, fraction: float, target_bytes: int) -> float:
        """The share of these files that a sample no longer reads once they are rewritten together; pure.

        Args:
            fraction: the sample.
            target_bytes: size of the files that would be written.
        """
        rows = self.below[-1] if self.below else 0.0
        # What one write laid out, another would lay out the same way.
        if rows < 1 or (self.writes < 2 and not self.can_change):
            return 0.0
        limits, end = limits_for(fraction), first_unsampled(fraction)
        counts = np.diff(np.array([0.0, *self.below])) * (_ESTIMATE / rows)
        starts = np.array([MIN_WEIGHT, *limits[:-1]], dtype=np.int64)
        sample = np.repeat(starts, np.maximum(np.rint(counts), 0).astype(np.int64)).astype(np.int32)
        target_rows = max(1, int(rows * target_bytes / max(self.bytes, 1)))
        bands = weight_bands(sample, int(rows), target_rows, max(0, self.of_revision - int(rows)))
        last = max(band_end for first, band_end in bands if first < end)
        return 1.0 - self.below[limits.index(last)] / rows if last in limits else 0.0


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
        self._candidates: DataFrame | None = None
        self._revision_rows = 0

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
        if self._candidates is None:
            self._candidates = overhead_files(snapshot, revision, fraction, limit)
            self._revision_rows = _rows_of(snapshot, revision)
        revision_rows = self._revision_rows
        live = snapshot.files.select("path", "deletion_vector")
        remaining = self._candidates.join(live, ["path", "deletion_vector"])
        target = _target_file_bytes(snapshot)
        unsettled = remaining.where(~F.col("settled"))
        if _total_overhead(unsettled, fraction, revision_rows).gain(fraction, target) < _SMALLEST_GAIN:
            return _no_selection(
                _total_overhead(remaining, fraction, revision_rows), settings, target, revision.revision_id
            )
        rows = _ordered(snapshot, unsettled, fraction, revision.revision_id).collect()
        by_path = {r.path: r for r in rows}
        files = take_until((_input_file(r) for r in rows), limit)
        chosen = _overhead_of_rows([by_path[f.path] for f in files], revision_rows)
        if chosen.gain(fraction, target) < _SMALLEST_GAIN:
            return Selection(None, (_too_small(chosen, limit),))
        note = f"{len(files)} files that a sample of {fraction:g} reads for a part of their rows"
        group = FileGroup(NAME, revision.revision_id, f"FRACTION_{fraction:g}", files, note)
        return Selection(group)


def overhead_files(snapshot: TableSnapshot, revision: Revision, fraction: float, bytes_per_iter: int) -> DataFrame:
    """The files of a revision that a sample reads for a part of their rows only.

    That is so of a file with an optimizable block (the sample ends inside its weights, and some of them are above what
    the cube keeps today), and of one that mixes blocks that are sampled and blocks that are not.

    Args:
        snapshot: the files that may be chosen.
        revision: their revision.
        fraction: the sample.
        bytes_per_iter: a file is settled when its write was as large as one of an iteration's, so that no row is
            rewritten run after run; see decision 023.

    Returns:
        path, deletion_vector, size, write_id, optimizable BOOLEAN, ours BOOLEAN (laid out by us), settled BOOLEAN,
        below ARRAY<DOUBLE> (estimated rows below each of ``limits_for``).
    """
    end = F.lit(first_unsampled(fraction))
    # What others hold of a cube counts, whether or not it may be chosen.
    whole = replace(snapshot, restrictions=())
    thresholds = whole.blocks(revision.revision_id).groupBy("cube_id").agg(F.min("max_weight").alias("threshold"))
    writes = (
        whole.files.where(F.col("revision") == revision.revision_id)
        .groupBy("write_id")
        .agg(F.sum("size").alias("write_bytes"))
    )
    band = F.split(F.col("tags")[BAND_TAG], ",")
    bands = snapshot.log_files.select("path", F.try_element_at(band, F.lit(2)).try_cast("bigint").alias("band_end"))
    # A cube's threshold says what its block may hold; the file's band says what is there.
    last = F.least(F.col("max_weight").cast("bigint"), F.coalesce(F.col("band_end") - 1, F.lit(MAX_WEIGHT)))
    first = F.col("min_weight").cast("bigint")
    blocks = (
        snapshot.blocks(revision.revision_id)
        .where("element_count > 0")
        .join(bands, "path")
        .join(thresholds, "cube_id")
        .withColumn("first", first)
        .withColumn("last", F.greatest(last, first))
        .withColumn("sampled", F.col("first") < end)
        .withColumn("optimizable", F.col("sampled") & (F.col("last") >= end) & (F.col("last") > F.col("threshold")))
    )
    below = F.array(*[F.sum(_rows_below(limit)) for limit in limits_for(fraction)])
    per_file = blocks.groupBy("path", "deletion_vector", "size", "write_id").agg(
        F.bool_or("optimizable").alias("optimizable"),
        (F.bool_or("sampled") & F.bool_or(~F.col("sampled"))).alias("mixes"),
        F.bool_or(F.col("band_end").isNotNull()).alias("ours"),
        below.alias("below"),
    )
    settled = F.col("ours") & ~F.col("optimizable") & (F.col("write_bytes") * 2 >= bytes_per_iter)
    return (
        per_file.where("optimizable OR mixes")
        .join(writes, "write_id")
        .select("path", "deletion_vector", "size", "write_id", "optimizable", "ours", "below", settled.alias("settled"))
    )


def _rows_below(limit: int) -> Column:
    first, last = F.col("first"), F.col("last")
    share = (F.lit(limit) - first).cast("double") / (last - first + 1)
    return F.col("element_count") * F.greatest(F.lit(0.0), F.least(F.lit(1.0), share))


def _rows_of(snapshot: TableSnapshot, revision: Revision) -> int:
    whole = replace(snapshot, restrictions=())
    found = whole.blocks(revision.revision_id).agg(F.sum("element_count").alias("rows")).collect()[0]
    return int(found.rows or 0)


def _total_overhead(files: DataFrame, fraction: float, of_revision: int) -> Overhead:
    count = len(limits_for(fraction))
    sums = [F.coalesce(F.sum(F.col("below")[i]), F.lit(0.0)).alias(f"b{i}") for i in range(count)]
    found = files.agg(
        F.count(F.lit(1)).alias("files"),
        F.coalesce(F.sum("size"), F.lit(0)).alias("bytes"),
        F.count_distinct("write_id").alias("writes"),
        F.coalesce(F.bool_or(F.col("optimizable") | ~F.col("ours")), F.lit(False)).alias("can_change"),
        *sums,
    ).collect()[0]
    below = tuple(found[f"b{i}"] for i in range(count))
    return Overhead(found.files, found.bytes, below, found.writes, found.can_change, of_revision)


def _ordered(snapshot: TableSnapshot, left: DataFrame, fraction: float, revision_id: int) -> DataFrame:
    """The files, those with the most rows that the sample does not want first."""
    wanted = limits_for(fraction).index(first_unsampled(fraction))
    facts = snapshot.files.select("path", "rows", "first_time", "last_time")
    most = left.withColumn("needless", F.element_at("below", -1) - F.col("below")[wanted])
    first = most.orderBy(F.col("needless").desc(), "path").limit(MAX_FILES_PER_GROUP)
    levels = file_levels(snapshot.blocks(revision_id))
    return first.join(facts, "path").join(levels, "path").orderBy(F.col("needless").desc(), "path")


def _input_file(row: Any) -> InputFile:
    return InputFile(row.path, row.deletion_vector, row["size"], row.rows, row["level"], row.first_time, row.last_time)


def _overhead_of_rows(rows: Sequence[Any], of_revision: int) -> Overhead:
    below = tuple(float(total) for total in np.sum([r.below for r in rows], axis=0)) if rows else ()
    return Overhead(
        len(rows),
        sum(r["size"] for r in rows),
        below,
        len({r.write_id for r in rows}),
        any(r.optimizable or not r.ours for r in rows),
        of_revision,
    )


def _no_selection(remaining: Overhead, settings: SelectionSettings, target: int, revision_id: int) -> Selection:
    fraction = settings.options["fraction"]
    note = (
        f"{NAME}: revision {revision_id} has no files that a rewrite would make a sample of {fraction:g} read less of"
    )
    if remaining.gain(fraction, target) < _SMALLEST_GAIN:
        return Selection(note=note)
    return Selection(None, (_too_small(remaining, settings.bytes_per_iter),), note)


def _too_small(found: Overhead, bytes_per_iter: int) -> SkippedGroup:
    note = f"bytes_per_iter = {bytes_per_iter} is too small: what it takes would be written the same way again"
    return SkippedGroup(NAME, "BYTES_PER_ITER_TOO_SMALL", found.files, found.bytes, note)


def _target_file_bytes(snapshot: TableSnapshot) -> int:
    configuration = snapshot.index_configuration
    return 1 if configuration is None else configuration.target_file_bytes
