"""The rows that a soak of replaced tables expects."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from soak.history import Statement
from soak.replacements import ReplacedHistory, rows_after


@pytest.mark.parametrize(
    ("kind", "left"),
    [
        ("insert", {0, 1, 2, 3, 8, 9}),
        ("overwrite", {8, 9}),
        ("select", {8, 9}),
        ("partition", {0, 2, 3, 9}),
        ("delete", {0, 2, 3}),
        ("truncate", set()),
        ("create", set()),
        ("restore", {5}),
    ],
)
def test_rows_after(kind, left):
    assert rows_after(Statement(kind, "", 8, 10, rest=1), {0, 1, 2, 3}, {5}) == left


def test_an_unknown_statement_has_no_rows():
    with pytest.raises(ValueError, match="vacuum"):
        rows_after(Statement("vacuum", ""), {0}, set())


def test_a_row_that_was_appended_after_the_read_of_a_statement_stays(tmp_path):
    history = ReplacedHistory(tmp_path, seconds=60)
    (tmp_path / "_delta_log").mkdir()
    first, append, overwrite = (
        history.begin(Statement(kind, "", low, low + 2))
        for kind, low in (("insert", 0), ("insert", 10), ("overwrite", 20))
    )
    commits = [{"userMetadata": first}, {"userMetadata": append, "readVersion": 0}]
    commits += [{"userMetadata": overwrite, "readVersion": 0}]
    for number, commit in enumerate(commits):
        info = json.dumps({"commitInfo": {"operation": "WRITE", **commit}}, separators=(",", ":"))
        (tmp_path / "_delta_log" / f"{number:020d}.json").write_text(info + "\n")
    assert history.newest().digest[0] == 4
    assert history.ids[2] == {10, 11, 20, 21}
