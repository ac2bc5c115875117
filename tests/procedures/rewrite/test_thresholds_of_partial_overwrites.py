"""An overwrite of a part of a table: nobody knows yet which files stay, so a threshold may have to be stated again."""

from types import SimpleNamespace

from file_lists import REVISIONS, ListedFile, columns_of

from otree.block import Block
from otree.cube import CubeId
from otree.tree import Tree
from otree.weight import MAX_WEIGHT
from procedures.layout.tags import WrittenFile, carry_thresholds
from procedures.rewrite.indexed_write import _remaining

ROOT = CubeId.root(2)
SPLIT, WHOLE = ROOT.child(0), ROOT.child(1)
REVISION = next(revision for revision in REVISIONS if revision.revision_id == 2)


def _file(name, *blocks):
    return ListedFile(
        name, 10, 0, 2, "w", tuple((cube.text, -(2**31), high, 5) for cube, high in blocks), 0, True, None
    )


def test_a_threshold_is_stated_again_only_where_blocks_differ():
    # The cube `SPLIT` was a leaf when the first file was written.
    files = columns_of(
        [_file("a", (ROOT, -100), (SPLIT, MAX_WEIGHT), (WHOLE, 70)), _file("b", (ROOT, -100), (SPLIT, 50), (WHOLE, 70))]
    )
    states = files.cube_states(REVISION)
    tree = Tree.current(2, states)
    target = SimpleNamespace(remaining=states, tree=tree, columns=SimpleNamespace(revision=REVISION))
    written = [WrittenFile("c", 1, (Block(SPLIT.child(1).text, 60, MAX_WEIGHT, 9),), 60)]

    def stated(mode):
        remaining = _remaining(SimpleNamespace(mode=mode, snapshot=files), target)
        (file,) = carry_thresholds(written, tree, remaining)
        return [block for block in file.blocks if not block.element_count]

    assert stated("append") == []
    assert stated("partial") == [Block(SPLIT.text, 50, 50, 0)]
