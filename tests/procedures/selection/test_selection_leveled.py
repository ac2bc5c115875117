"""Which block group LeveledCompaction takes, without Spark."""

from dataclasses import replace

import pytest
from listed_tables import REVISION, file, findings

from procedures.groups.block_groups import BlockGroup
from procedures.groups.group import Group, SkippedGroup


def _group(level=0, cube="A", depth=1, blocks=2, elements=10):
    return BlockGroup(level, cube, depth, blocks, elements)


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


def _findings(*files, **given):
    return list(findings(files, "LeveledCompaction", **given))


def test_the_first_group_that_rises_is_taken_alone():
    files = [file("a1", {"A": 4}), file("a2", {"A": 5}), file("b1", {"Q": 5}), file("b2", {"Q": 5})]
    group, none = _findings(*files)
    assert [f.path for f in group.files] == ["b1", "b2"]
    assert (group.strategy, group.revision_id) == ("LeveledCompaction", REVISION)
    assert group.reason == "LEVEL_0_CUBE_Q"
    assert "no fragmented cubes" in none


def test_the_root_cube_is_named():
    group, *_ = _findings(file("a", {"": 5}), file("b", {"": 5}))
    assert group.reason == "LEVEL_0_CUBE_root"


def test_files_are_taken_until_the_bytes_are_crossed_the_crossing_file_included():
    group, *_ = _findings(*(file(name, {"A": 5}) for name in ("a1", "a2", "a3")), bytes_per_iter=11)
    assert [f.path for f in group.files] == ["a1", "a2"]


def test_groups_of_one_plan_share_no_file():
    files = [file(f"{cube}{n}", {cube: 5}) for cube in ("A", "Q") for n in range(2)]
    first, second, none = _findings(*files)
    assert [[f.path for f in group.files] for group in (first, second)] == [["A0", "A1"], ["Q0", "Q1"]]
    assert isinstance(none, str)


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ([file("a1", {"A": 9}, 10), file("a2", {"A": 9}, 11)], "9 rows of 1 write,"),
        ([file(f"a{n}", {"A": 4}, 5) for n in range(3)], "8 rows of 2 writes"),
        (
            [replace(file(f"a{n}", {"A": 4}, 5), write="w" if n < 2 else "v") for n in range(3)],
            "8 rows of 1 write,",
        ),
    ],
    ids=["one file", "too few rows", "one write"],
)
def test_a_truncated_group_that_cannot_rise_is_skipped_and_the_next_taken(files, why):
    found = _findings(*files, file("b1", {"Q": 5}, 1), file("b2", {"Q": 5}, 1), bytes_per_iter=10)
    (group,) = (finding for finding in found if isinstance(finding, Group))
    skipped = next(finding for finding in found if isinstance(finding, SkippedGroup))
    assert group.reason == "LEVEL_0_CUBE_Q"
    assert (skipped.strategy, skipped.reason) == ("LeveledCompaction", "BYTES_PER_ITER_TOO_SMALL")
    assert skipped.bytes == 10
    assert why in skipped.note


def test_without_a_group_the_sentence_names_the_revision():
    assert _findings() == [f"LeveledCompaction: revision {REVISION} has no fragmented cubes"]
