"""SamplingOverheadReduction: what a rewrite gains, which files have overhead, and that a run ends."""

import pytest
from tables import NUMBERS, numbers

from otree.weight import MAX_WEIGHT, MIN_WEIGHT, weight_of
from procedures.selection.sampling_candidates import Overhead, first_unsampled, limits_for

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
    assert files.gain(fraction, target) == pytest.approx(gain, abs=0.02)


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
