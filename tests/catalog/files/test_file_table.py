"""Columns in memory: levels, trees and groups against a naive reference."""

import gc
import tracemalloc
from collections import defaultdict
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from file_lists import REVISIONS, ListedFile, columns_of, file_lists, rows_of
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyspark.sql.types import StringType, StructField, StructType

from catalog.files.arrays import digits, group_numbers
from catalog.files.file_table import FileTable
from catalog.files.version_files import KeptTables, PathFilter, VersionFiles, VersionKey
from otree.cube import CubeId
from otree.level import level_of
from procedures.selection.file_positions import LeveledBlocks

SCHEMA = StructType().add("id", "long").add("x", "double").add("y", "double")
# Drawing a list of files takes as long as checking it ten times.
SOME = settings(max_examples=40)
TWO_GROUPS = tuple(
    ListedFile(f"part-{n}", 10, 0, 2, f"w{n}", ((cube, 0, 1, 5),), 0, True, None)
    for n, cube in enumerate(("", "", CubeId(2, (0,)).text, CubeId(2, (0,)).text))
)


def _levels(files):
    """Level of each file: its largest block, where the blocks of one cube and one write count as one."""
    of_write, largest = defaultdict(int), {}
    for f in files:
        for cube, _, _, count in f.blocks if f.revision else ():
            of_write[f.revision, f.write or f.path, cube] += count
    for f in files:
        for cube, _, _, count in f.blocks if f.revision else ():
            if count:
                largest[f.path] = max(largest.get(f.path, 0), of_write[f.revision, f.write or f.path, cube])
    return {path: level_of(count) for path, count in largest.items()}


def _groups(files, revision):
    levels, groups = _levels(files), defaultdict(list)
    for f in files:
        for cube, _, _, count in f.blocks if f.revision == revision else ():
            if count:
                groups[levels[f.path], cube].append((f, count))
    return groups


@SOME
@example(TWO_GROUPS)
@given(file_lists())
def test_levels_are_those_of_the_definition(files):
    columns = columns_of(files)
    expected = _levels(files)
    assert {str(p): int(level) for p, level in zip(columns.path, columns.levels, strict=True) if level >= 0} == expected


@SOME
@given(file_lists(), st.sampled_from(REVISIONS), st.sets(st.integers(0, 11)), st.sampled_from([min, max]))
def test_the_tree_is_one_threshold_and_all_rows_of_each_cube(files, revision, left_out, choose):
    without = [f"part-{n}" for n in left_out]
    expected = {}
    for f in files:
        if f.revision == revision.revision_id and f.path not in without:
            for cube, _, high, count in f.blocks:
                threshold, rows = expected.get(cube, (high, 0))
                expected[cube] = choose(threshold, high), rows + count
    found = columns_of(files).cube_states(revision, without, largest=choose is max)
    assert {cube.text: (s.max_weight, s.element_count) for cube, s in found.items()} == expected
    if not without:
        rows = columns_of(files).rows_of_cubes(revision)
        assert rows.tolist() == [count for _, (_, count) in sorted(expected.items())]


@SOME
@given(file_lists())
def test_groups_that_rise_come_by_level_depth_blocks_and_cube(files):
    leveled = LeveledBlocks.of(columns_of(files), 2, 1)
    expected = []
    for (level, cube), members in _groups(files, 2).items():
        writes, total = {f.write or f.path for f, _ in members}, sum(count for _, count in members)
        if len(writes) >= 2 and total >= 10 ** (level + 1):
            expected.append((level, len(cube), len(writes), cube, total))
    found = [leveled.block_group(n) for n in leveled.rising_groups()]
    assert [(g.level, g.depth, g.blocks, g.cube_id, g.element_count) for g in found] == sorted(expected)
    for number in leveled.rising_groups():
        group = leveled.block_group(number)
        members = _groups(files, 2)[group.level, group.cube_id]
        in_order = sorted((f.size, f.path, count) for f, count in members)
        paths = [(leveled.files.path[p], count) for p, count in zip(*leveled.files_of(number), strict=True)]
        assert paths == [(path, count) for _, path, count in in_order]


@SOME
@example(TWO_GROUPS, 11)
@given(file_lists(), st.sampled_from([1, 11, 211, 100_000]))
def test_a_byte_limit_holds_in_each_group_by_itself(files, limit):
    reached = LeveledBlocks.of(columns_of(files), 2, 1).within_bytes(limit)
    expected = set()
    for (level, cube), members in _groups(files, 2).items():
        if len({f.write or f.path for f, _ in members}) < 2 or sum(c for _, c in members) < 10 ** (level + 1):
            continue
        taken, before = [], 0
        for f, count in sorted(members, key=lambda member: (member[0].size, member[0].path)):
            if before < limit:
                taken.append((f, count))
            before += f.size
        if len({f.write or f.path for f, _ in taken}) >= 2 and sum(c for _, c in taken) >= 10 ** (level + 1):
            expected |= {(f.path, cube, count) for f, count in taken}
    blocks = reached.blocks
    rows = zip(blocks.file, blocks.cube, blocks.elements, strict=True)
    assert {(reached.files.path[f], blocks.cube_ids[c], int(n)) for f, c, n in rows} == expected


@SOME
@given(file_lists(), st.sets(st.integers(0, 11)))
def test_a_path_filter_keeps_blocks_with_their_files(files, named):
    columns = columns_of(files)
    for keeps in (True, False):
        kept = columns.where(PathFilter(frozenset(f"part-{n}" for n in named), keeps).of(columns))
        expected = columns_of([f for f in files if (f.path in {f"part-{n}" for n in named}) == keeps])
        assert kept.path.tolist() == expected.path.tolist()
        assert kept.levels.tolist() == expected.levels.tolist()
        for position in range(len(kept)):
            of_file, same = kept.blocks_in(position), expected.blocks_in(position)
            assert of_file.elements.tolist() == same.elements.tolist()
            assert [of_file.cube_ids[c] for c in of_file.cube] == [same.cube_ids[c] for c in same.cube]


@given(st.lists(st.integers(0, 10**18)))
def test_digits_are_exact(counts):
    assert digits(np.array(counts, np.int64)).tolist() == [len(str(n)) if n else 0 for n in counts]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2))))
def test_groups_are_numbered_in_the_order_of_their_keys(keys):
    first, second = (np.array([key[i] for key in keys], np.int64) for i in range(2))
    numbers, count = group_numbers(first, second)
    ordered = sorted(set(keys))
    assert (numbers.tolist(), count) == ([ordered.index(key) for key in keys], len(ordered))


def test_columns_are_kept_up_to_a_number_of_bytes():
    one = columns_of([ListedFile("part-0", 10, 0, 2, "w", (("", 0, 1, 5),), 0, True, None)])
    kept = KeptTables(2 * one.kept_bytes)
    a, b, c, d = (VersionKey(key, frozenset(), 1, 0) for key in "abcd")
    for key in (a, b, c):
        kept.put(key, one)
    assert [kept.get(key) is one for key in (a, b, c)] == [False, True, True]
    kept.get(b)
    kept.put(d, one)
    assert [kept.get(key) is one for key in (b, c, d)] == [True, False, True]
    small = KeptTables(one.kept_bytes - 1)
    small.put(a, one)
    assert small.get(a) is None
    assert len(columns_of([])) == 0


def test_two_versions_of_a_table_are_kept_the_newest_among_them():
    one = columns_of([])
    kept = KeptTables(10**6)
    for version in (3, 9, 5, 7):
        kept.put(_key("a", version), one)
    assert [kept.get(_key("a", version)) is one for version in (3, 5, 7, 9)] == [False, False, True, True]
    kept.put(_key("a", 10), one)
    assert [kept.get(_key("a", version)) is one for version in (7, 9, 10)] == [False, True, True]
    kept.put(_key("b", 1), one)
    assert kept.get(_key("a", 10)) is one


@pytest.mark.parametrize(
    ("count", "folder", "deleted"),
    [(0, "", 0), (5, "", 0), (300, "", 0), (300, "", 1), (300, "day=2026-11-22/" * 9, 0)],
)
def test_what_is_kept_takes_no_more_memory_than_is_counted(count, folder, deleted):
    """Lists of tables with a thousand columns, with the names that Spark gives to files."""
    wide = StructType([StructField(f"column_{n}", StringType()) for n in range(1000)])
    reader = SimpleNamespace(schema=wide, partition_columns=(), ranged_columns=("x", "y"), dimensions={1: 2})
    name = folder + "part-00000-c3a0b3a4-64a6-4d0e-bf6e-3a3a1f0ab0de-c{:06}.snappy.parquet"
    of_plain = {"revision": 0, "write": None, "deleted": deleted}
    plain = [replace(TWO_GROUPS[0], path=name.format(n), **of_plain) for n in range(count)]
    rows = rows_of(plain)
    limit = 8 * FileTable.of(rows).kept_bytes
    kept = KeptTables(limit)
    # Python and pyspark keep objects for reuse.
    for version in range(4):
        _ = VersionFiles(None, "t", "t", version, 0, reader).key
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0] + pa.total_allocated_bytes()
    for version in range(12):
        # No two of them share a string.
        location, table_id = (f"file:/warehouse/{word}_{version % 6}" for word in ("table", "id"))
        key = VersionFiles(None, location, table_id, version, 0, reader).key
        kept.put(key, FileTable.of(rows))
    gc.collect()
    taken = tracemalloc.get_traced_memory()[0] + pa.total_allocated_bytes() - before
    tracemalloc.stop()
    assert limit / 3 < taken <= limit


@SOME
@example(list(TWO_GROUPS[:2]), list(TWO_GROUPS[2:]), set())
@given(file_lists(), file_lists(), st.sets(st.integers(0, 11)))
def test_a_list_that_follows_commits_is_that_of_the_version(files, later, removed):
    """Later files replace those of the same path; the result is as if the list had been read anew."""
    removed = {f"part-{n}" for n in removed}
    later = [f for f in later if f.path not in removed]
    gone = removed | {f.path for f in later}
    expected = columns_of([*(f for f in files if f.path not in gone), *later])
    found = columns_of(files).updated(gone, columns_of(later))
    for name in FileTable.__dataclass_fields__:
        if name not in ("blocks", "write", "write_ids", "low", "high"):
            assert getattr(found, name).tolist() == getattr(expected, name).tolist(), name
    assert _writes(found) == _writes(expected)
    assert list(found.write_ids) == sorted(set(found.write_ids))
    assert found.levels.tolist() == expected.levels.tolist()
    assert _blocks(found) == _blocks(expected)


def test_a_list_that_is_followed_for_long_forgets_writes_without_files():
    """Each commit adds a plain file, which counts as a write, and merges away the one before it."""
    files = columns_of([replace(TWO_GROUPS[0], path=f"part-{n}", revision=0, write=None) for n in range(10)])
    for n in range(10, 200):
        later = columns_of([replace(TWO_GROUPS[0], path=f"part-{n}", revision=0, write=None)])
        files = files.updated({f"part-{n - 10}"}, later)
        assert _writes(files) == files.path.tolist()
        assert len(files.write_ids) <= 2 * len(files) + 1


def _writes(columns):
    return [columns.write_ids[number] for number in columns.write]


def _blocks(columns):
    b = columns.blocks
    cubes = [b.cube_ids[cube] for cube in b.cube]
    return list(zip(b.file, cubes, b.min_weight, b.max_weight, b.elements, strict=True))


def test_a_newer_version_is_found_by_its_metadata_and_number():
    one = columns_of([])
    kept = KeptTables(10**6)
    for metadata, version in (("a", 3), ("a", 5), ("a", 9), ("b", 6)):
        kept.put(_key(metadata, version), one)
    assert kept.newest_before(_key("a", 7))[0] == 5
    assert kept.newest_before(_key("a", 3)) is None
    assert kept.newest_before(_key("c", 7)) is None


def test_a_revision_that_was_made_since_changes_no_file_unless_tags_name_it():
    kept = KeptTables(10**6)
    tagged = replace(
        columns_of([ListedFile("part-0", 10, 0, 2, "w", (), 0, True, None)]), tagged_revision=np.array([2])
    )
    kept.put(_key("a", 1, (1, 2)), tagged)
    assert kept.newest_before(_key("a", 2, (1, 2), (3, 2)))[0] == 1
    # Tags that could not be read before, and those of a revision that is no longer there.
    assert kept.newest_before(_key("a", 2, (1, 2), (2, 2))) is None
    assert kept.newest_before(_key("a", 2)) is None
    assert kept.newest_before(_key("a", 2, (1, 3))) is None


def _key(metadata, version, *spaces):
    return VersionKey(metadata, frozenset(spaces), version, 0)


def test_a_table_without_files_has_no_columns():
    empty = FileTable.empty()
    assert (len(empty), empty.levels.tolist()) == (0, [])
