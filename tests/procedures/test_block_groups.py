"""Levels and block groups as DataFrames, against a naive reference in plain Python."""

from collections import defaultdict

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F

from catalog.table.block_rows import level_column
from otree.cube import CubeId
from otree.level import level_of
from procedures.groups.block_groups import block_groups, leveled_blocks

SCHEMA = (
    "revision bigint, "
    "path string, deletion_vector string, size bigint, write_id string, cube_id string, min_weight int, "
    "max_weight int, element_count bigint"
)


def _reference(blocks, symbols):
    blocks = [b for b in blocks if b[3] > 0]
    of_write = defaultdict(int)
    for _, write, cube, count in blocks:
        of_write[cube, write] += count
    largest = defaultdict(int)
    for path, write, cube, _ in blocks:
        largest[path] = max(largest[path], of_write[cube, write])
    groups = defaultdict(lambda: (set(), 0))
    for path, write, cube, count in blocks:
        key = level_of(largest[path]), cube
        writes, total = groups[key]
        groups[key] = writes | {write}, total + count
    kept = [
        (level, len(cube) // symbols, len(writes), cube, total)
        for (level, cube), (writes, total) in groups.items()
        if len(writes) >= 2 and total >= 10 ** (level + 1)
    ]
    return sorted(kept)


def _blocks(dimensions):
    cubes = st.lists(st.integers(0, min(3, 2**dimensions - 1)), max_size=2).map(
        lambda path: CubeId(dimensions, tuple(path)).text
    )
    counts = st.one_of(st.sampled_from([0, 1, 9, 10, 99, 100, 999, 1000]), st.integers(1, 5000))
    return st.lists(st.tuples(st.integers(0, 8), cubes, counts), max_size=25)


@pytest.mark.quick_sample(1)
@pytest.mark.parametrize("dimensions", [2, 7])
def test_groups_are_those_of_the_definition(spark, dimensions):
    @settings(max_examples=6, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(_blocks(dimensions))
    def check(drawn):
        # A file belongs to one write, and holds a cube at most once.
        blocks = list({(n, cube): (f"f{n}", f"w{n % 4}", cube, count) for n, cube, count in drawn}.values())
        symbols = -(-dimensions // 6)
        frame = spark.createDataFrame([(1, p, "", 10, w, c, 0, 1, n) for p, w, c, n in blocks], SCHEMA)
        found = block_groups(leveled_blocks(frame), symbols).collect()
        assert [(r["level"], r.depth, r.blocks, r.cube_id, r.element_count) for r in found] == _reference(
            blocks, symbols
        )

    check()


def test_levels_are_exact_at_every_power_of_ten(spark):
    counts = [0, *(n for power in range(1, 19) for n in (10**power - 1, 10**power)), 2**63 - 1]
    frame = spark.createDataFrame([(n,) for n in counts], "n bigint")
    assert [r[0] for r in frame.select(level_column(F.col("n"))).collect()] == [level_of(n) for n in counts]
