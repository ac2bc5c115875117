"""The rows of a rewrite are as many as the log tells of its inputs."""

import pytest

from catalog.errors import RowsChangedError
from procedures.rewrite.results import check_row_count


@pytest.mark.parametrize("written", [[], [4], [3, 3], [6]])
def test_other_rows_than_the_log_tells_are_not_committed(written):
    with pytest.raises(RowsChangedError, match=f"5 rows were to be written and {sum(written)} were"):
        check_row_count(5, written)


@pytest.mark.parametrize(("expected", "written"), [(5, [2, 3]), (0, []), (None, [1]), (5, [1, None])])
def test_equal_and_unknown_numbers_pass(expected, written):
    check_row_count(expected, written)
