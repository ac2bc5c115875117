"""Which unindexed files are taken, without Spark."""

import pytest

from catalog.errors import InvalidArgumentError
from procedures.plan import InputFile
from procedures.selection.base import MAX_FILES_PER_GROUP, take_until
from procedures.selection.unindexed_files import choose, epoch_millis


def _files(*sizes):
    return [InputFile(f"f{i}", "", size, 10, -1, i, i) for i, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("sizes", "limit", "taken"),
    [
        ([], 10, 0),
        ([5], 10, 1),
        ([50], 10, 1),
        ([5, 5, 5], 10, 2),
        ([5, 4, 5, 1], 10, 3),
        ([0, 0, 0], 1, 3),
        ([5, 5, 5], 10**12, 3),
    ],
)
def test_take_until_includes_the_crossing_file(sizes, limit, taken):
    files = _files(*sizes)
    assert take_until(files, limit) == tuple(files[:taken])


def test_take_until_asks_for_no_file_after_the_crossing_one():
    asked = []

    def endless():
        for number in range(10**9):
            asked.append(number)
            yield _files(4)[0]

    assert len(take_until(endless(), 10)) == 3
    assert len(asked) <= 4


def test_take_until_bounds_the_number_of_files():
    assert len(take_until(_files(*[0] * (MAX_FILES_PER_GROUP + 5)), 1)) == MAX_FILES_PER_GROUP


def test_choose_takes_the_first_bytes_in_the_given_order():
    files = _files(6, 6, 6)
    found = choose(iter(files), 10, 3)
    assert found.group is not None
    assert found.group.files == tuple(files[:2])
    assert (found.group.strategy, found.group.revision_id, found.group.reason) == ("UnindexedFiles", 0, "UNINDEXED")
    assert (found.group.bytes, found.group.rows) == (12, 20)
    assert "2 of 3" in found.group.note


def test_choose_without_files_says_so():
    found = choose(iter(()), 10, 0)
    assert found.group is None
    assert "no unindexed files" in found.note


def test_rows_of_a_group_are_unknown_when_one_file_does_not_tell():
    first, second = _files(1, 1)
    group = choose([first, InputFile("g", "", 1, None, -1, 0, 0), second], 100, 3).group
    assert group is not None
    assert group.rows is None


@pytest.mark.parametrize(
    ("text", "millis"),
    [
        ("0", 0),
        (" 1700000000000 ", 1_700_000_000_000),
        ("1970-01-01", 0),
        ("1970-01-02 00:00:01", 86_401_000),
        ("1970-01-01T01:00:00+01:00", 0),
    ],
)
def test_epoch_millis(text, millis):
    assert epoch_millis("from_timestamp", text) == millis


@pytest.mark.parametrize("text", ["", "yesterday", "1.5", "-1", "2023-13-01"])
def test_epoch_millis_refuses(text):
    with pytest.raises(InvalidArgumentError, match="from_timestamp"):
        epoch_millis("from_timestamp", text)
