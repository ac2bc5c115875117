"""CubeDefragmentation: which files of a taken set are lifted, that it ends, and what it does to a table."""

import math
from collections import defaultdict
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from listed_tables import chosen, file
from tables import NUMBERS, numbers

from otree.level import level_of, next_level_elements


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ([file("a", {"A": 5}), file("b", {"A": 5})], ["a", "b"]),
        ([file("a", {"A": 5}), file("b", {"A": 4})], []),
        ([replace(file(name, {"A": 50}), write="w") for name in "ab"], []),
        ([file("a", {"A": 9}), file("b", {"Q": 9})], []),
        ([file("a", {"A": 9}), file("b", {"A": 9, "Q": 50})], []),
        ([file("a", {"A": 5}), file("b", {"A": 5, "Q": 1}), file("c", {"Q": 2})], ["a", "b"]),
    ],
    ids=["rises", "too few rows", "one write", "other cubes", "other levels", "what comes along stays"],
)
def test_files_are_lifted_by_a_group_that_rises_among_them(files, expected):
    assert chosen(files, "CubeDefragmentation") == expected


def _rises(blocks):
    """Whether blocks of one cube and level, as rows by write, rise together."""
    level, rows, writes = blocks
    return len(set(writes)) >= 2 and sum(rows) >= next_level_elements(level)


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
        """What the strategy takes, and what its definition takes."""
        listed = [replace(file(p, cubes, self.size(p)), write=w) for p, (w, cubes) in self.files.items()]
        found = chosen(listed, "CubeDefragmentation", bytes_per_iter=limit)
        assert found == self.defined(limit)
        return found

    def defined(self, limit):
        levels = self.levels()
        groups = defaultdict(list)
        for path, (_, cubes) in self.files.items():
            for cube in cubes:
                groups[levels[path], len(cube), cube].append(path)
        ordered = []
        for (level, _, cube), paths in sorted(groups.items()):
            paths.sort(key=lambda path: (self.size(path), path))
            within = [p for n, p in enumerate(paths) if sum(map(self.size, paths[:n])) < limit]
            if _rises(self._blocks(within, level, cube)):
                ordered += [p for p in within if p not in ordered]
        taken, total = [], 0
        for path in ordered:
            if total < limit:
                taken.append(path)
                total += self.size(path)
        lifted = set()
        for (level, _, cube), paths in groups.items():
            among = [p for p in taken if p in paths]
            if _rises(self._blocks(among, level, cube)):
                lifted.update(among)
        return [p for p in taken if p in lifted]

    def _blocks(self, paths, level, cube):
        return level, [self.files[p][1][cube] for p in paths], [self.files[p][0] for p in paths]

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
