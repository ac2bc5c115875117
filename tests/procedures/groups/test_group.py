"""A group to concatenate loses no file."""

import pytest

from procedures.groups.group import Concatenate, FileRun, InputFile, RowRemoval


def _file(path, rows=5):
    return InputFile(path, "", 10, rows, -1, 0, 0)


def _group(*files, runs, **more):
    return Concatenate("S", 0, "R", files, runs=tuple(FileRun(paths) for paths in runs), **more)


def test_files_without_rows_may_be_in_no_run():
    assert _group(_file("a"), _file("b", 0), runs=[("a",)]).rows == 5
    removal = RowRemoval(None, 5, None, ())
    assert _group(_file("a"), _file("b"), runs=[("a",)], removal=removal).bytes == 20


@pytest.mark.parametrize(
    ("files", "runs", "text"),
    [
        ([_file("a"), _file("b")], [("a",)], "such as b"),
        ([_file("a"), _file("b", None)], [("a",)], "such as b"),
        ([_file("a")], [("a",), ("a",)], "in one run only"),
        ([_file("a")], [("a", "b")], "one of the files"),
    ],
)
def test_a_file_that_would_be_lost_or_doubled_is_refused(files, runs, text):
    with pytest.raises(ValueError, match=text):
        _group(*files, runs=runs)
