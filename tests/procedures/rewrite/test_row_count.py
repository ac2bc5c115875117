"""The rows of a rewrite are as many as the log tells of its inputs, less those that are removed."""

import pytest

from catalog.errors import RowsChangedError
from catalog.history.events import FileFacts
from procedures.groups.group import Concatenate, FileRun, InputFile, KeyOrder, Relayout, RowRemoval
from procedures.rewrite.group_rewrite import check_row_count

INPUTS = tuple(InputFile(path, "", 100, rows, -1, 0, 0) for path, rows in (("a", 2), ("b", 3)))
RELAYOUT = Relayout("SizeTieredClustering", 0, "", INPUTS)


def _written(*rows):
    return [FileFacts(f"new-{number}", 100, count, (), (), -1) for number, count in enumerate(rows)]


@pytest.mark.parametrize("rows", [[], [4], [3, 3], [6]])
def test_other_rows_than_the_log_tells_are_not_committed(rows):
    with pytest.raises(RowsChangedError, match=f"5 rows were to be written and {sum(rows)} were"):
        check_row_count(RELAYOUT, _written(*rows))


def test_removed_rows_are_not_written():
    removal = RowRemoval(None, 2, KeyOrder(("id",), "ts"), ())
    group = Concatenate("DeleteCompaction", 0, "", INPUTS, runs=(FileRun(("a", "b")),), removal=removal)
    check_row_count(group, _written(3))
    with pytest.raises(RowsChangedError, match="3 rows were to be written and 5 were"):
        check_row_count(group, _written(5))


@pytest.mark.parametrize("rows", [[2, 3], [1, None]])
def test_equal_and_unknown_numbers_pass(rows):
    check_row_count(RELAYOUT, _written(*rows))


def test_inputs_of_unknown_rows_are_not_compared():
    unknown = InputFile("c", "", 100, None, -1, 0, 0)
    check_row_count(Relayout("SizeTieredClustering", 0, "", (unknown,)), _written(1))
