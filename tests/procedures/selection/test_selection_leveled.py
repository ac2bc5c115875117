"""Which block group LeveledCompaction takes, without Spark."""

import pytest

from procedures.groups.block_groups import BlockGroup
from procedures.groups.plan import InputFile
from procedures.selection.leveled_compaction import GroupFile, choose


def _group(level=0, cube="A", depth=1, blocks=2, elements=10):
    return BlockGroup(level, cube, depth, blocks, elements)


def _file(name, size=10, elements=5, write=None):
    return GroupFile(InputFile(name, "", size, elements, 0, 0, 0), elements, write or name)


def _choose(groups, files, bytes_per_iter=10**9):
    return choose(groups, lambda group: iter(files[group.cube_id]), bytes_per_iter, 3)


@pytest.mark.parametrize(
    ("level", "blocks", "elements", "rises"),
    [
        (0, 2, 10, True),
        (0, 2, 9, False),
        (0, 1, 1000, False),
        (0, 0, 1000, False),
        (1, 2, 99, False),
        (1, 2, 100, True),
        (3, 7, 10_000, True),
        (3, 7, 9_999, False),
        (18, 2, 10**19, True),
        (18, 2, 10**19 - 1, False),
    ],
)
def test_a_group_needs_two_blocks_and_the_rows_of_the_next_level(level, blocks, elements, rises):
    assert _group(level, "A", 1, blocks, elements).can_rise is rises


def test_the_first_group_that_can_rise_is_taken_alone():
    files = {"A": [_file("a1"), _file("a2")], "B": [_file("b1"), _file("b2")]}
    found = _choose([_group(elements=9), _group(blocks=1, elements=50), _group(cube="B"), _group()], files)
    assert found.group is not None
    assert [f.path for f in found.group.files] == ["b1", "b2"]
    assert (found.group.strategy, found.group.revision_id) == ("LeveledCompaction", 3)
    assert found.group.reason == "LEVEL_0_CUBE_B"
    assert not found.skipped


def test_the_root_cube_is_named():
    found = _choose([_group(cube="", depth=0)], {"": [_file("a"), _file("b")]})
    assert found.group is not None
    assert found.group.reason == "LEVEL_0_CUBE_root"


def test_files_are_taken_until_the_bytes_are_crossed_the_crossing_file_included():
    files = {"A": [_file("a1", 10, 5), _file("a2", 10, 5), _file("a3", 10, 5)]}
    found = _choose([_group(blocks=3, elements=15)], files, bytes_per_iter=11)
    assert found.group is not None
    assert [f.path for f in found.group.files] == ["a1", "a2"]


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ([_file("a1", 10, 9), _file("a2", 10, 9)], "9 rows of 1 write,"),
        ([_file("a1", 5, 4, "w1"), _file("a2", 5, 4, "w2"), _file("a3", 5, 4, "w3")], "8 rows of 2 writes"),
        ([_file("a1", 5, 9, "w1"), _file("a2", 5, 9, "w1"), _file("a3", 5, 9, "w2")], "18 rows of 1 write,"),
    ],
    ids=["one file", "too few rows", "one write"],
)
def test_a_truncated_group_that_cannot_rise_is_skipped_and_the_next_taken(files, why):
    groups = [_group(blocks=3, elements=18), _group(cube="B")]
    found = _choose(groups, {"A": files, "B": [_file("b1", 1, 5), _file("b2", 1, 5)]}, bytes_per_iter=10)
    assert found.group is not None
    assert found.group.reason == "LEVEL_0_CUBE_B"
    (skipped,) = found.skipped
    assert (skipped.strategy, skipped.reason) == ("LeveledCompaction", "BYTES_PER_ITER_TOO_SMALL")
    assert skipped.bytes == 10
    assert why in skipped.note


def test_without_a_group_the_note_names_the_revision():
    found = _choose([], {})
    assert found.group is None
    assert "revision 3" in found.note


def test_groups_after_the_chosen_one_and_their_files_are_not_asked_for():
    asked = []

    def groups():
        for cube in "ABC":
            asked.append(cube)
            yield _group(cube=cube)

    def files(group):
        asked.append(f"files of {group.cube_id}")
        yield _file("f1", 10, 6)
        yield _file("f2", 10, 6)
        asked.append("a third file")
        yield _file("f3", 10, 6)

    assert choose(groups(), files, 20, 1).group is not None
    assert asked == ["A", "files of A"] or asked == ["A", "files of A", "a third file"]
    assert "B" not in asked
