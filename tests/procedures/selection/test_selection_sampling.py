"""SamplingOverheadReduction: what a rewrite gains, which files have overhead, and that a run ends."""

import itertools

import numpy as np
import pytest
from tables import NUMBERS, numbers

import sql_ext
from catalog.errors import InvalidArgumentError
from catalog.properties.index_properties import SAMPLE_FRACTIONS
from otree.packing import weight_bands
from otree.weight import MAX_WEIGHT, MIN_WEIGHT, weight_of
from procedures.selection.sampling_candidates import Overhead, SampledWeights, first_unsampled, limits_for

SPAN = 2**32


def _even(fraction, first=0.0, last=1.0, rows=1000.0, **facts):
    """Files whose rows are spread evenly over the weights from one fraction to another."""

    def share(limit):
        position = (limit - MIN_WEIGHT) / SPAN
        return min(1.0, max(0.0, (position - first) / (last - first)))

    below = tuple(rows * share(limit) for limit in limits_for(fraction))
    known = {"files": 8, "bytes": 1000, "writes": 2, "can_change": False, "of_revision": 0}
    return Overhead(below=below, **(known | facts))


def test_a_sample_ends_before_the_weight_of_its_fraction():
    assert first_unsampled(0.1) == weight_of(0.1)
    assert first_unsampled(1.0) == MAX_WEIGHT + 1
    assert limits_for(0.1)[-1] == limits_for(0.123)[-1] == MAX_WEIGHT + 1
    assert weight_of(0.123) in limits_for(0.123)


@pytest.mark.parametrize(
    ("fraction", "files", "target", "gain"),
    [
        (0.1, _even(0.1), 50, 0.9),
        (0.05, _even(0.05), 50, 0.9),
        (0.01, _even(0.01), 300, 0.9),
        (0.2, _even(0.2), 50, 0.0),
        (0.2, _even(0.2, of_revision=30_000), 50, 0.8),
        (0.1, _even(0.1), 1000, 0.0),
        (0.1, _even(0.1, of_revision=10_000), 1000, 0.9),
        (0.15, _even(0.15, 0.1, 0.2), 50, 0.0),
        (0.1, _even(0.1, writes=1), 50, 0.0),
        (0.1, _even(0.1, writes=1, can_change=True), 50, 0.9),
        (0.1, Overhead(0, 0, (), 0, False, 0), 50, 0.0),
    ],
    ids=[
        "round",
        "up to the band's end",
        "coarse bands",
        "above the largest limit",
        "above it beside many files",
        "one file",
        "one file beside others",
        "one band",
        "one write",
        "changed tree",
        "none",
    ],
)
def test_the_gain_is_what_the_sample_no_longer_reads(fraction, files, target, gain):
    assert files.gain(SampledWeights.of(fraction), target) == pytest.approx(gain, abs=0.02)


def test_named_fractions_end_bands_of_every_size():
    """Of twenty files, a sample of 0.15 reads all without the fraction, and 0.15 of the rows with it."""
    weights = np.linspace(MIN_WEIGHT, MAX_WEIGHT, 4_000).astype(np.int32)

    def read(fractions, sample):
        bands = weight_bands(weights, 20_000, 1_000, fractions=fractions)
        return max(end for first, end in bands if first < weight_of(sample))

    assert read((), 0.15) == MAX_WEIGHT + 1
    assert read((0.15,), 0.15) == weight_of(0.15)
    assert read((0.15,), 0.1) == weight_of(0.1)
    below = tuple(20_000 * (limit - MIN_WEIGHT) / SPAN for limit in limits_for(0.15, (0.15,)))
    files = Overhead(26, 20_000, below, 26, False, 20_000)
    assert files.gain(SampledWeights.of(0.15, (0.15,)), 1_000) == pytest.approx(0.85, abs=0.01)
    assert _even(0.15, rows=20_000.0).gain(SampledWeights.of(0.15), 50) < 0.1


def test_a_rewritten_table_gains_nothing_again():
    """Bands that a rewrite made end at the sample, or hold too few rows to be divided."""
    weights = np.linspace(MIN_WEIGHT, MAX_WEIGHT, 40_000).astype(np.int32)
    for files, fraction in itertools.product((2, 3, 11, 26, 300), (0.003, 0.01, 0.07, 0.1, 0.15, 0.5)):
        for fractions in ((), (fraction,), (0.01, 0.15)):
            sampled = SampledWeights.of(fraction, fractions)
            bands = weight_bands(weights, files * 1_000, 1_000, fractions=fractions)
            within = [(first, end) for first, end in bands if first < sampled.end < end and end > sampled.band_end]
            if not within:
                continue
            (first, end), rows = within[0], files * 1_000.0
            shares = [min(max(limit - first, 0), end - first) / SPAN for limit in sampled.limits]
            left = Overhead(9, int(rows), tuple(rows * share for share in shares), 1, False, int(rows))
            assert left.gain(sampled, 1_000) == 0.0


@pytest.mark.parametrize("text", ["0", "1", "0.15;0.01", "x", "-0.1", "nan", "0.00001", ",".join(["0.1"] * 9)])
def test_fractions_that_no_layout_can_have_are_refused(text):
    with pytest.raises(InvalidArgumentError, match=r"use.index.sampleFractions.*from 0.0001 to below 1"):
        SAMPLE_FRACTIONS.parse(text)


def test_fractions_are_sorted_and_named_once():
    assert SAMPLE_FRACTIONS.parse(" 0.15, 0.01,0.15") == (0.01, 0.15)
    assert SAMPLE_FRACTIONS.value({}) == ()


def _reduce(table, fraction="0.1", **given):
    return table.optimize(strategy="SamplingOverheadReduction", options={"fraction": fraction}, **given)


@pytest.fixture
def appended(spark, new_table):
    """Twelve writes of 150 rows, each a file that every sample reads; a file should hold a thousand."""
    table = new_table(NUMBERS, index="x,y", cube_size=1000, file_bytes="1mb")
    table.append(spark.sql("SELECT -1L id, 0D x, 0 y, '' s UNION ALL SELECT -2L, 1D, 999, ''")).index()
    table.append(numbers(spark, 1800, partitions=12), files=12)
    table.optimize(strategy="UnindexedFiles", options={"batch_bytes": "1"})
    size = sum(f.size for f in table.files if f.rows > 100) * 1000 // 1800
    table.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('use.index.targetFileBytes'='{size}')")
    return table


def _read_by(table, fraction):
    end = first_unsampled(fraction)
    return sum(f.rows for f in table.files if min(b.min_weight for b in f.blocks) < end)


@pytest.mark.slow
def test_overhead_is_rewritten_once_and_a_second_run_finds_nothing(appended):
    before, read = appended.checksum(), _read_by(appended, 0.1)
    (alone,) = _reduce(appended, bytes_per_iter=1)
    assert (alone.state, alone.reason) == ("skipped", "BYTES_PER_ITER_TOO_SMALL")

    report = _reduce(appended)

    assert [(r.state, r.reason) for r in report] == [("committed", "FRACTION_0.1")]
    assert report[0].input_files >= 12
    assert _read_by(appended, 0.1) < 0.6 * read
    assert appended.checksum() == before
    version = appended.version
    (row,) = _reduce(appended)
    assert (row.state, row.reason) == ("skipped", "NOTHING_TO_DO")
    assert appended.version == version


@pytest.mark.slow
def test_the_set_is_computed_once_per_run(spark, appended):
    """Six of twelve files at a time: what the first iteration wrote is not taken again, nor in a second run."""
    sizes = sorted(f.size for f in appended.files if f.rows > 100)
    report = _reduce(appended, bytes_per_iter=sum(sizes[:6]) - 1)
    assert [r.state for r in report] == ["committed", "committed"], report
    assert sum(r.rows for r in report) <= 1802
    second = _reduce(appended, bytes_per_iter=sum(sizes[:6]) - 1)
    assert "committed" not in {r.state for r in second}


@pytest.mark.slow
@pytest.mark.parametrize(("fraction", "named"), [(0.1, ""), (0.15, "0.15")])
def test_a_smaller_target_lets_samples_read_less(spark, new_table, fraction, named):
    """The cubes are as large as the table, so no block has offsets: what a rewrite would write decides."""
    table = new_table(NUMBERS, index="x,y", properties={"use.index.sampleFractions": named} if named else {})
    table.append(spark.sql("SELECT -1L id, 0D x, 0 y, '' s UNION ALL SELECT -2L, 1D, 999, ''")).index()
    for part in range(25):
        table.append(numbers(spark, 3_000, start=3_000 * part)).index()
    size = sum(file.size for file in table.files)
    table.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('use.index.targetFileBytes'='{size // 12}')")

    def read():
        (scan,) = sql_ext.read_report(table.data.sample(fraction)).scans
        return scan.kept_files, scan.kept_bytes / size

    assert read()[0] == 25
    before, options = table.checksum(), {"fraction": str(fraction)}
    first, *_ = table.optimize(strategy="SamplingOverheadReduction", options=options)
    assert first.state == "committed"
    assert read()[0] <= 3
    assert read()[1] <= 1.1 * fraction
    assert table.checksum() == before
    (again,) = table.optimize(strategy="SamplingOverheadReduction", options=options)
    assert again.reason == "NOTHING_TO_DO"
    version = table.version
    table.optimize()
    assert table.version == version
