"""A lowered threshold is told even where no row was written to the cube: readers that walk the tree rely on it."""

from types import MappingProxyType

from placement import check_placement
from pyspark.sql import functions as F

from otree.block import Block
from otree.cube import CubeId
from otree.tree import CubeState, Tree
from otree.weight import MAX_WEIGHT
from procedures.layout import target
from procedures.layout.tags import WrittenFile, carry_thresholds

ROOT = CubeId.root(2)
CHILD = ROOT.child(0)
TREE = Tree(2, MappingProxyType({ROOT: -100, CHILD: 50}))


def _file(*blocks):
    return WrittenFile("f", 1, blocks, 60)


def test_a_cube_without_rows_gets_an_empty_block():
    deep = Block(CHILD.child(1).text, 55, MAX_WEIGHT, 9)
    remaining = {ROOT: CubeState(MAX_WEIGHT, 10), CHILD: CubeState(50, 5)}
    (told,) = carry_thresholds([_file(deep)], TREE, remaining)
    assert told.blocks == (deep, Block(ROOT.text, -100, -100, 0))
    assert told.rows == 9


def test_cubes_that_got_rows_or_have_no_blocks_need_none():
    own = Block(ROOT.text, -200, -100, 3)
    (told,) = carry_thresholds([_file(own)], TREE, {ROOT: CubeState(MAX_WEIGHT, 10)})
    assert told.blocks == (own,)
    assert carry_thresholds([], TREE, {ROOT: CubeState(MAX_WEIGHT, 10)}) == []


def test_a_rewrite_tells_the_threshold_that_it_lowered(spark, new_table, monkeypatch):
    table = new_table("id BIGINT, x BIGINT", index="x", cube_size=5000)
    rows = spark.range(1000).selectExpr("id", "id AS x")
    table.append(rows).index()
    threshold = 0
    lowered = Tree(1, {CubeId.root(1): threshold})
    monkeypatch.setattr(target, "grown_tree", lambda *_: lowered)
    above = rows.where(F.hash("x") > threshold)
    table.append(above)
    table.index()
    states = table.managed.snapshot().cube_states(table.revisions[1])
    assert states[CubeId.root(1)].max_weight == threshold
    assert check_placement(table) == 1000 + above.count()
