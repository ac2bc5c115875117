"""Writing a layout over a fake transaction: what is checked, and in which order; without Spark."""

from types import MappingProxyType, SimpleNamespace

import pytest

from catalog.errors import RowsChangedError
from catalog.jvm.file_writer import CountedBlock, DataFile
from otree.block import Block
from otree.cube import CubeId
from otree.tree import CubeState, Tree
from otree.weight import MAX_WEIGHT
from procedures.layout import layout_writer
from procedures.layout.layout_writer import LayoutWriter
from procedures.layout.step import Step
from procedures.layout.tags import WrittenFile
from procedures.layout.target import Target

ROOT = CubeId.root(2)
TREE = Tree(2, MappingProxyType({ROOT: 100}))
CHILD = ROOT.child(1)
ORDINALS = {ROOT: 0, CHILD: 2}
REVISION = SimpleNamespace(columns=("x", "a.b"))


class FakeTransaction:
    """Writes nothing; its files hold what the test says."""

    def __init__(self, *files):
        self.files, self.calls = list(files), []

    def configure(self, entries, removed=()):
        self.calls.append(("configure", dict(entries)))

    def write(self, rows, cube=None, weight=None):
        self.calls.append(("write", rows, cube, weight))
        return self.files

    def read_written(self):
        self.calls.append(("read_written",))
        return "read rows"


def data_file(path, *blocks, rows=None, size=10):
    counted = tuple(CountedBlock(ORDINALS[cube], *facts) for cube, *facts in blocks) if blocks else None
    return DataFile(path, size, rows, None, counted)


@pytest.fixture
def layout(monkeypatch):
    """Replaces what needs Spark: the sample, the arrangement, the columns, and reading files back."""
    calls = []
    monkeypatch.setattr(
        layout_writer, "lay_out", lambda *arguments: calls.append(arguments) or SimpleNamespace(largest_file=77)
    )
    monkeypatch.setattr(layout_writer, "arranged", lambda rows, *_: f"arranged {rows}")
    columns = SimpleNamespace(cube=lambda ordinals: "cube", weight="weight")
    monkeypatch.setattr(layout_writer, "stored_columns_of", lambda *_: columns)
    monkeypatch.setattr(layout_writer, "columns_of", lambda *_: columns)
    return calls


def writer(transaction, strict=True, steps=None, conf=None):
    conf = {} if conf is None else conf
    session = SimpleNamespace(conf=SimpleNamespace(set=conf.__setitem__))
    return LayoutWriter(session, transaction, None, (lambda _: None) if steps is None else steps.append, strict)


def target(rows, remaining=MappingProxyType({}), new=MappingProxyType({})):
    sample = SimpleNamespace(rows=rows, columns=SimpleNamespace(revision=REVISION))
    return Target(sample, TREE, remaining, 0.5, new)


def test_a_layout_is_configured_written_and_verified_in_this_order(layout):
    transaction, conf = FakeTransaction(data_file("f", (ROOT, 3, -5, 90), (CHILD, 2, 101, 300), rows=5)), {}
    observed = writer(transaction, steps=transaction.calls, conf=conf)
    (file,) = observed.write_laid_out(target(5, new={"qbeast.lastRevisionID": "2"}), "rows")
    assert transaction.calls == [
        ("configure", {"qbeast.lastRevisionID": "2"}),
        Step.WRITE,
        ("write", "arranged rows", "cube", "weight"),
        Step.VERIFY,
    ]
    assert layout[0][0].rows == 5
    assert conf == {
        "spark.sql.files.maxRecordsPerFile": "77",
        "parquet.page.row.count.limit": "2000",
        "use.pages.sortedColumns": '["x", "a.b"]',
    }
    assert file == WrittenFile(
        "f", 10, (Block(ROOT.text, -5, 100, 3), Block(CHILD.text, 101, MAX_WEIGHT, 2)), last_weight=300
    )


@pytest.mark.parametrize("measured", [4, 6])
def test_a_strict_writer_writes_as_many_rows_as_were_measured(layout, measured):
    transaction = FakeTransaction(data_file("f", (ROOT, 3, -5, 90)), data_file("g", (CHILD, 2, 101, 300)))
    with pytest.raises(RowsChangedError, match=f"{measured} rows were read and 5 written; nothing was committed"):
        writer(transaction).write_laid_out(target(measured), "rows")
    assert len(writer(transaction, strict=False).write_laid_out(target(measured), "rows")) == 2
    assert len(writer(transaction).write_laid_out(target(5), "rows")) == 2


@pytest.mark.parametrize("strict", [True, False])
def test_a_file_holds_the_rows_of_its_statistics(layout, strict):
    transaction = FakeTransaction(data_file("f", (ROOT, 3, -5, 90), rows=4))
    with pytest.raises(RowsChangedError, match="4 rows were written to f and 3 found in it"):
        writer(transaction, strict).write_laid_out(target(3), "rows")


@pytest.mark.parametrize("strict", [True, False])
def test_a_row_above_the_threshold_of_its_cube_is_refused(layout, strict):
    transaction = FakeTransaction(data_file("f", (ROOT, 3, -5, 101)))
    with pytest.raises(RowsChangedError, match="A row of weight 101 was written to cube '' of at most 100"):
        writer(transaction, strict).write_laid_out(target(3), "rows")


def test_where_no_rows_are_counted_a_rewrite_fails_and_a_write_reads_its_files(layout, monkeypatch):
    transaction = FakeTransaction(data_file("f"))
    with pytest.raises(RowsChangedError, match="The writer noted no rows"):
        writer(transaction).write_laid_out(target(3), "rows")
    read = WrittenFile("f", 10, (Block(ROOT.text, 1, 100, 3),), 90)
    monkeypatch.setattr(layout_writer, "read_blocks", lambda files, rows, *_: [read] if rows == "read rows" else [])
    assert writer(transaction, strict=False).write_laid_out(target(3), "rows") == [read]
    assert transaction.calls[-1] == ("read_written",)


def test_lowered_thresholds_are_carried_where_the_cube_got_no_row(layout):
    transaction = FakeTransaction(data_file("f", (CHILD, 2, 101, 300)))
    remaining = {ROOT: CubeState(MAX_WEIGHT, 10)}
    empty = Block(ROOT.text, 100, 100, 0)
    (file,) = writer(transaction).write_laid_out(target(2, remaining), "rows")
    assert file.blocks[-1] == empty
    (file,) = writer(transaction).write_laid_out(target(2), "rows", remaining=remaining)
    assert file.blocks[-1] == empty
    (file,) = writer(transaction).write_laid_out(target(2, remaining), "rows", remaining={})
    assert empty not in file.blocks


def test_rows_of_no_cube_are_written_as_they_are():
    transaction, steps = FakeTransaction(), []
    assert writer(transaction, steps=steps).write_unplaced("rows") == []
    assert (transaction.calls, steps) == ([("write", "rows", None, None)], [Step.WRITE])
