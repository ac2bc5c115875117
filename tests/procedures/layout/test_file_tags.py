"""The tags of a written file: readers of the table and the optimizer's selection rely on each of them."""

from otree.block import Block
from otree.cube import CubeId
from otree.weight import MAX_WEIGHT
from procedures.layout.tags import BAND_TAG, REWRITES_TAG, TIME_RANGE_TAG, FileHistory, WrittenFile, tags_of

ROOT = CubeId.root(2)
FILE = WrittenFile(
    "part-0",
    1000,
    (
        Block(ROOT.text, -70, 10, 4),
        Block(ROOT.child(0).text, 11, MAX_WEIGHT, 3),
        # An empty block only states a threshold: it has no row whose weight the band could include.
        Block(ROOT.child(1).text, -300, -300, 0),
    ),
    25,
)


def test_the_band_includes_each_weight_of_the_rows():
    tags = tags_of(FILE, 1, FileHistory("w", 0, 0))
    first, end = (int(part) for part in tags[BAND_TAG].split(","))
    assert (first, end) == (-70, 26)


def test_the_times_are_the_first_and_the_last():
    assert tags_of(FILE, 1, FileHistory("w", 5, 9))[TIME_RANGE_TAG] == "5,9"


def test_rewrites_are_tagged_once_there_are_any():
    assert REWRITES_TAG not in tags_of(FILE, 1, FileHistory("w", 0, 0))
    assert tags_of(FILE, 1, FileHistory("w", 0, 0, 1.25))[REWRITES_TAG] == "1.250"
