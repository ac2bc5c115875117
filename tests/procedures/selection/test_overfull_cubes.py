"""Which overfull cubes are split, and with which files; without Spark, and in the story of small indexed appends."""

import pytest
from file_lists import file_table
from hypothesis import given
from hypothesis import strategies as st
from placement import check_placement
from pyspark.sql import functions as F
from tables import NUMBERS, numbers

from catalog.files.file_table import Blocks
from otree.overfull import can_be_split, is_overfull
from otree.revision import Revision
from otree.transformation import LinearTransformation
from otree.transformer import Transformer
from procedures.groups.group import Relayout, SkippedGroup
from procedures.selection.leveled_compaction import overfull_group

REVISION = Revision(
    3, 0, "/t", 1000, (Transformer("linear", "a", "LongDataType"),), (LinearTransformation(0, 9, 0, "LongDataType"),)
)


def files(cube, *writes):
    """Files with rows of a cube, by write: bytes of each file."""
    sizes = [(f"w{number}", size) for number, write in enumerate(writes) for size in write]
    block = {"cubeId": cube, "minWeight": 0, "maxWeight": 9, "elementCount": 2500 // len(sizes)}
    return file_table(
        len(sizes),
        size=[size for _, size in sizes],
        write_id=[write for write, _ in sizes],
        revision=[3] * len(sizes),
        blocks=[[block]] * len(sizes),
    )


def test_whole_writes_are_taken_until_the_bytes_are_crossed():
    found = overfull_group(files("A", (70,), (10, 10), (50,)), REVISION, "S", 40)
    assert isinstance(found, Relayout)
    assert [f.size for f in found.files] == [10, 10, 50]
    assert (found.revision_id, found.reason) == (3, "OVERFULL_CUBE_A")
    assert "cube A holds 2,500 rows, more than 2 times the desired 1,000; 3 files of 2 writes taken" in found.note


def test_one_write_alone_is_passed_over_visibly():
    """Writing the files of one write again changes nothing."""
    found = overfull_group(files("", (50,), (60,)), REVISION, "S", 50)
    assert isinstance(found, SkippedGroup)
    assert (found.reason, found.files) == ("BYTES_PER_ITER_TOO_SMALL", 1)
    assert "cube root" in found.note


def _of_writes(writes):
    """A file per write: its cube, and its rows, each of which is a byte."""
    return file_table(
        len(writes),
        path=[f"f{number:03d}" for number in range(len(writes))],
        size=[rows for _, rows in writes],
        write_id=[f"w{number:03d}" for number in range(len(writes))],
        revision=[3] * len(writes),
        blocks=[[{"cubeId": cube, "minWeight": 0, "maxWeight": 9, "elementCount": rows}] for cube, rows in writes],
    )


def test_small_appends_do_not_rewrite_a_large_cube_again_and_again():
    """All rows of the cube have one value, so that it stays overfull, and no group takes its largest write."""
    writes, rewritten, appends = [20_000, 5_000], 0, 60
    for _ in range(appends):
        writes.append(100)
        while True:
            found = overfull_group(_of_writes([("A", rows) for rows in writes]), REVISION, "S", 1_000)
            if not isinstance(found, Relayout):
                break
            taken = {int(file.path[1:]) for file in found.files}
            rewritten += found.bytes
            writes = [rows for number, rows in enumerate(writes) if number not in taken] + [found.bytes]
    assert sum(writes) == 25_000 + appends * 100
    # If the largest write of a group did not count, each append would rewrite 5,000 rows and more.
    assert 0 < rewritten <= 4 * appends * 100


def test_a_cube_that_stays_overfull_does_not_keep_others_from_being_split():
    """The root comes first, but its group would be one small append and a write that is much larger."""
    root, other = [("", 20_000), ("", 9_000), ("", 100)], [("A", 1_500), ("A", 1_400)]
    assert isinstance(overfull_group(_of_writes(root), REVISION, "S", 1_000), SkippedGroup)
    found = overfull_group(_of_writes([*root, *other]), REVISION, "S", 2_000)
    assert isinstance(found, Relayout)
    assert found.reason == "OVERFULL_CUBE_A"


def test_blocks_are_not_read_again_for_each_cube(monkeypatch):
    """A thousand cubes that no rewrite relieves are looked at: each by its own blocks."""
    cubes = [f"{first}{second}" for first in "ABCDEFGH" for second in "ABCDEFGH"]
    writes = [(cube, rows) for cube in cubes for rows in (20_000, 9_000, 100)]
    read = []
    where = Blocks.where

    def counted(self, keep):
        if keep.dtype != bool:
            read.append(len(keep))
        return where(self, keep)

    monkeypatch.setattr(Blocks, "where", counted)
    assert isinstance(overfull_group(_of_writes(writes), REVISION, "S", 1_000), SkippedGroup)
    assert sum(read) == len(writes)


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=8), st.integers(1, 1000))
def test_a_rewrite_of_all_files_ends_it(writes, desired):
    total = sum(writes)
    assert not can_be_split(total, total, desired)
    if max(writes) <= 1.5 * desired:
        assert can_be_split(total, max(writes), desired) == is_overfull(total, desired)


@pytest.fixture
def table(new_table):
    return lambda size: new_table(NUMBERS, index="x,y", cube_size=size, file_bytes="1mb")


def largest_cube(table):
    revision = max(table.revisions.values(), key=lambda r: r.revision_id)
    states = table.managed.snapshot().cube_states(revision)
    return max(state.element_count for state in states.values())


def _story(spark, table, size, batch, appends):
    table = table(size)
    for i in range(appends):
        numbers(spark, batch, start=i * batch, partitions=1).write.format("qbeast").mode("append").saveAsTable(
            table.name
        )
        if i % 10 == 9:
            table.optimize()
            assert largest_cube(table) <= 2 * size
    before = table.checksum()
    assert check_placement(table) == before[0] == batch * appends
    version = table.version
    table.optimize()
    assert table.version == version


@pytest.mark.slow
@pytest.mark.parametrize(("size", "batch", "appends"), [(50, 7, 30), (40, 50, 20), (10, 1, 30)])
def test_small_indexed_appends_leave_no_overfull_cube(spark, table, size, batch, appends):
    _story(spark, table, size, batch, appends)


@pytest.mark.slow
def test_eighty_appends_of_400_rows(spark, table):
    """One cube had 24,699 rows."""
    _story(spark, table, 5000, 400, 80)


@pytest.mark.slow
@pytest.mark.parametrize("inside", [True, False])
def test_an_append_of_many_cubes_is_placed_in_a_grown_tree(spark, table, inside):
    """It is small in bytes, so that nothing is measured before it is written; with a new revision and without one."""
    table = table(50)
    for start, count in ((0, 60), (60, 1500)):
        rows = numbers(spark, count, start=start)
        if start and inside:
            rows = rows.withColumns({"x": F.col("x") / 2 + 0.2, "y": F.lit(500)})
        rows.write.format("qbeast").mode("append").saveAsTable(table.name)
    assert (1 in table.revisions, 2 in table.revisions) == (True, not inside)
    assert largest_cube(table) <= 100
    assert check_placement(table) == 1560
