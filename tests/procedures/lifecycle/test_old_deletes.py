"""Compaction of old deleted rows beside writers that remove files; no Spark is needed."""

from types import SimpleNamespace

import pytest

from catalog.errors import UnknownNameError
from procedures.declare.runs import Run
from procedures.lifecycle.purge import old_deletes
from procedures.lifecycle.purge.old_deletes import compact_old_deletes, compact_remaining


class FakeTable:
    """A table whose files vanish: one before each of the first compactions."""

    def __init__(self, live, vanishing=()):
        self.live = list(live)
        self.vanishing = list(vanishing)
        self.compacted = []

    def compact(self, paths):
        if self.vanishing:
            self.live.remove(self.vanishing.pop(0))
        for path in paths:
            if path not in self.live:
                raise UnknownNameError.of("file", path, self.live)
        self.compacted += paths
        return [f"report of {len(paths)}"]

    def live_paths(self, paths):
        return [path for path in paths if path in self.live]


def test_files_that_vanish_are_left_out_and_the_others_compacted():
    table = FakeTable("abcde", "bd")
    assert compact_remaining(list("abcde"), table.compact, table.live_paths) == ["report of 3"]
    assert table.compacted == list("ace")


def test_nothing_is_compacted_if_all_files_vanish():
    table = FakeTable("a", "a")
    assert compact_remaining(["a"], table.compact, table.live_paths) == []
    assert table.compacted == []


def test_another_unknown_name_is_an_error():
    table = FakeTable("ab")
    with pytest.raises(UnknownNameError, match="'x'"):
        compact_remaining(["a", "x"], table.compact, list)


def test_a_request_to_stop_ends_the_run_of_the_compaction_and_starts_no_further_one(monkeypatch):
    reclamation = Run("t", "file:/t", "automatic", {}, 0)
    stops = []

    def optimize(table, settings, run):
        reclamation.request_stop("SUSPENDED", "suspended")
        stops.append(run.stop_reason.code)
        return ["report"]

    monkeypatch.setattr(old_deletes, "optimize", optimize)
    table = SimpleNamespace(name="t", location="file:/t")
    paths = [f"f{number}" for number in range(3000)]
    part = Run("t", "file:/t", "automatic", {}, 0, part_of=reclamation)
    rows = compact_old_deletes(table, paths, 0.0, part, is_stopped=lambda: part.stop_reason is not None, dry_run=False)
    assert (rows, stops) == (["report"], ["SUSPENDED"])
