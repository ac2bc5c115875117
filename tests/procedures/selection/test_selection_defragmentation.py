"""CubeDefragmentation: which files of a taken set are lifted, that it ends, and what it does to a table."""

import math
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import NUMBERS, numbers

from otree.level import level_of, next_level_elements
from procedures.groups.plan import InputFile
from procedures.groups.selection_strategy import take_until
from procedures.selection.cube_defragmentation import FileBlock, lifted


def _block(path, cube, elements, write=None, level=0):
    return FileBlock(path, level, cube, write or path, elements)


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        ([_block("a", "A", 5), _block("b", "A", 5)], {"a", "b"}),
        ([_block("a", "A", 5), _block("b", "A", 4)], set()),
        ([_block("a", "A", 50, "w"), _block("b", "A", 50, "w")], set()),
        ([_block("a", "A", 9), _block("b", "B", 9)], set()),
        ([_block("a", "A", 9), _block("b", "A", 9, level=1)], set()),
        ([_block("a", "A", 5), _block("b", "A", 5), _block("b", "B", 1), _block("c", "B", 2)], {"a", "b"}),
    ],
    ids=["rises", "too few rows", "one write", "other cubes", "other levels", "what comes along stays"],
)
def test_files_are_lifted_by_a_group_that_rises_among_them(blocks, expected):
    assert lifted(blocks) == frozenset(expected)


class _Table:
    """Files as lists of (cube, rows) and the write of each; a rewrite merges files into one."""

    def __init__(self, files):
        self.files = {f"f{n}": (f"f{n}", dict(cubes)) for n, cubes in enumerate(files)}
        self.rows = sum(sum(cubes.values()) for _, cubes in self.files.values())
        self.next = len(files)

    def levels(self):
        of_write = defaultdict(int)
        for write, cubes in self.files.values():
            for cube, rows in cubes.items():
                of_write[write, cube] += rows
        return {p: level_of(max(of_write[w, c] for c in cubes)) for p, (w, cubes) in self.files.items()}

    def size(self, path):
        return sum(self.files[path][1].values())

    def chosen(self, limit):
        """What the strategy's definition takes."""
        levels = self.levels()
        groups = defaultdict(list)
        for path, (_, cubes) in self.files.items():
            for cube in cubes:
                groups[levels[path], len(cube), cube].append(path)
        ordered = []
        for key, paths in sorted(groups.items()):
            paths.sort(key=lambda path: (self.size(path), path))
            within = [p for n, p in enumerate(paths) if sum(map(self.size, paths[:n])) < limit]
            if lifted([self._of(p, key[2], levels) for p in within]):
                ordered += [p for p in within if p not in ordered]
        taken = [f.path for f in take_until((InputFile(p, "", self.size(p), None, 0, 0, 0) for p in ordered), limit)]
        kept = lifted([self._of(p, cube, levels) for p in taken for cube in self.files[p][1]])
        return [p for p in taken if p in kept]

    def _of(self, path, cube, levels):
        write, cubes = self.files[path]
        return FileBlock(path, levels[path], cube, write, cubes[cube])

    def rewrite(self, paths):
        merged = defaultdict(int)
        for path in paths:
            for cube, rows in self.files.pop(path)[1].items():
                merged[cube] += rows
        name = f"f{self.next}"
        self.next += 1
        self.files[name] = name, dict(merged)


_CUBES = st.dictionaries(
    st.sampled_from(["", "A", "B", "AA", "AB", "BA"]), st.integers(1, 3000), min_size=1, max_size=4
)


@settings(max_examples=150, derandomize=True)
@given(st.lists(_CUBES, min_size=1, max_size=25), st.sampled_from([1, 50, 2_000, 10**9]))
def test_it_ends_lifts_files_every_time_and_rewrites_each_row_once_a_level_at_most(files, limit):
    table = _Table(files)
    levels = math.ceil(math.log10(table.rows + 1)) + 1
    rewritten = 0
    while chosen := table.chosen(limit):
        before = table.levels()
        rewritten += sum(map(table.size, chosen))
        table.rewrite(chosen)
        after = table.levels()
        assert after[f"f{table.next - 1}"] > min(before[p] for p in chosen)
        assert rewritten <= levels * table.rows
    if limit == 10**9:  # nothing that qualifies is left
        levels_left = table.levels()
        groups = defaultdict(list)
        for path, (_, cubes) in table.files.items():
            for cube, rows in cubes.items():
                groups[levels_left[path], cube].append(rows)
        assert not [k for k, rows in groups.items() if len(rows) >= 2 and sum(rows) >= next_level_elements(k[0])]


@pytest.mark.slow
def test_a_table_is_defragmented_and_keeps_its_rows(spark, new_table):
    table = new_table(NUMBERS, index="x,y", cube_size=5000)
    table.append(spark.sql("SELECT -1L id, 0D x, 0 y, '' s UNION ALL SELECT -2L, 1D, 999, ''")).index()
    table.append(numbers(spark, 160, partitions=4), files=4)
    table.optimize(strategy="UnindexedFiles", options={"batch_bytes": "1"})
    before, files = table.checksum(), len(table.files)
    # Too little to reach the next level, and said so.
    (row,) = table.optimize(strategy="CubeDefragmentation", bytes_per_iter=1)
    assert (row.state, row.reason) == ("skipped", "BYTES_PER_ITER_TOO_SMALL")

    report = table.optimize(strategy="cubedefragmentation")

    assert [(r.strategy, r.state, r.reason, r.input_files, r.rows) for r in report] == [
        ("CubeDefragmentation", "committed", "FROM_LEVEL_1", 4, 160)
    ]
    assert table.checksum() == before
    assert len(table.files) == files - 3
    levels = {level_of(max(b.element_count for b in f.blocks)) for f in table.files}
    assert max(levels) == 2
    (row,) = table.optimize(strategy="CubeDefragmentation")
    assert (row.state, row.reason) == ("skipped", "NOTHING_TO_DO")
