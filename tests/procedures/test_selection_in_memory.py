"""Columns in memory: levels, trees and groups against a naive reference, and equal to what Spark jobs find."""

from collections import defaultdict

import numpy as np
import pytest
from file_lists import LOG_SCHEMA, REVISIONS, ListedFile, columns_of, file_lists, snapshot_of
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyspark.sql.types import StructType

from catalog.jvm.local_rows import local_data_frame
from catalog.table import file_columns
from catalog.table.file_columns import digits, group_numbers
from catalog.table.kept_columns import KeptColumns, PathFilter
from otree.cube import CubeId
from otree.level import level_of
from procedures.calls.optimize import OPTIMIZE
from procedures.loop.optimize_settings import OptimizeSettings
from procedures.loop.run_selection import RunSelection
from procedures.selection.file_positions import LeveledBlocks
from procedures.selection.revision_rewrite import former_index_note

SCHEMA = StructType().add("id", "long").add("x", "double").add("y", "double")
# Drawing a list of files takes as long as checking it ten times.
SOME = settings(max_examples=40)
TWO_GROUPS = tuple(
    ListedFile(f"part-{n}", 10, 0, 2, f"w{n}", ((cube, 0, 1, 5),), 0, True, None)
    for n, cube in enumerate(("", "", CubeId(2, (0,)).text, CubeId(2, (0,)).text))
)
DEFAULTS = {p.name: None if p.required else p.default for p in OPTIMIZE.parameters}


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
@given(file_lists(), st.sampled_from(REVISIONS), st.sets(st.integers(0, 11)))
def test_the_tree_is_the_smallest_threshold_and_all_rows_of_each_cube(files, revision, left_out):
    without = [f"part-{n}" for n in left_out]
    expected = {}
    for f in files:
        if f.revision == revision.revision_id and f.path not in without:
            for cube, _, high, count in f.blocks:
                threshold, rows = expected.get(cube, (high, 0))
                expected[cube] = min(threshold, high), rows + count
    found = columns_of(files).cube_states(revision, without)
    assert {cube.text: (s.max_weight, s.element_count) for cube, s in found.items()} == expected


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
        paths = [(leveled.files.path[p], count) for p, count in leveled.files_of(number)]
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
    kept = KeptColumns(2 * one.kept_bytes)
    for key in "abc":
        kept.put(key, one)
    assert [kept.get(key) is one for key in "abc"] == [False, True, True]
    kept.get("b")
    kept.put("d", one)
    assert [kept.get(key) is one for key in "bcd"] == [True, False, True]
    small = KeptColumns(one.kept_bytes - 1)
    small.put("a", one)
    assert small.get("a") is None
    assert len(columns_of([])) == 0


CALLS = (
    {"strategy": "UnindexedFiles"},
    {"strategy": "UnindexedFiles", "options": {"batch_bytes": "150", "from_timestamp": "2"}},
    {"strategy": "LeveledCompaction"},
    {"strategy": "LeveledCompaction", "bytes_per_iter": 211, "revision_id": 1},
    {"strategy": "CubeDefragmentation"},
    {"strategy": "CubeDefragmentation", "bytes_per_iter": 211},
    {"strategy": "SamplingOverheadReduction", "options": {"fraction": "0.1"}},
    {"strategy": "SamplingOverheadReduction", "options": {"fraction": "0.3"}, "bytes_per_iter": 300},
    {"revision_rewrite": True, "revision_id": 1},
    {"files": ["part-1", "part-2"]},
    {"strategy": "LeveledCompaction", "where": "id >= 0"},
)


def _selections(snapshot, arguments, paths):
    if not paths.issuperset(arguments.get("files", ())):
        return []
    selection = RunSelection(OptimizeSettings.of({**DEFAULTS, "table": "t", **arguments}))
    found = []
    for _, selector in selection:
        restricted = selection.restricted(snapshot)
        first = selector.select(restricted)
        found.append(first)
        if first.group is not None:
            found.append(selector.select(restricted.without([f.path for f in first.group.files])))
    return found


@pytest.mark.quick_sample(1)
@pytest.mark.parametrize("part", range(4))
def test_selection_in_memory_is_selection_by_jobs(spark, part):
    """The same files, levels, notes and skipped groups, for every strategy, restricted or not."""
    calls = CALLS[part::4]

    @settings(max_examples=2, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(file_lists())
    def check(files):
        rows = [file.of_log() for file in files]

        def selections(most_files):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(file_columns, "MAX_FILES", most_files)
                found = []
                for call in calls:
                    log_files = local_data_frame(spark, rows, LOG_SCHEMA)
                    snapshot = snapshot_of(spark, log_files, len(files), SCHEMA)
                    assert (snapshot.columns is None) == (len(files) > most_files)
                    found.append(_selections(snapshot, call, {f.path for f in files}))
                tree = snapshot.cube_states(REVISIONS[1], ["part-0"])
                return found, tree, snapshot.revision_ids_in_use, former_index_note(snapshot), snapshot.unindexed_total

        assert selections(50_000) == selections(-1)

    check()
