"""Reading files of ours that another process is writing."""

import pytest

from catalog.state.lease import HeldBy, Lease, acquire
from catalog.table import managed_table
from catalog.table.managed_table import ManagedTable

HELD = Lease("other", "host:1", "manual", 1_000, 50_000)


class SlowDisk:
    """A handle whose file another process has created; its text is there after some attempts to read it."""

    def __init__(self, empty_reads, text):
        self.empty_reads, self.text, self.writes = empty_reads, text, []

    def read_text(self, _):
        self.empty_reads -= 1
        return "" if self.empty_reads >= 0 else self.text

    def create_text(self, file, _):
        self.writes.append(file)
        return False

    def write_text(self, file, _):
        self.writes.append(file)


@pytest.fixture
def table_with(monkeypatch):
    monkeypatch.setattr(managed_table.time, "sleep", lambda _: None)
    return lambda disk: ManagedTable(None, "t", "file:/t", disk)


def test_a_text_under_way_is_waited_for(table_with):
    assert table_with(SlowDisk(3, "{}")).read_state("x.json") == "{}"
    assert table_with(SlowDisk(9, "{}")).read_state("x.json") == ""
    assert table_with(SlowDisk(0, None)).read_state("x.json") is None


def test_a_lease_that_is_being_written_excludes_others(table_with):
    disk = SlowDisk(2, HELD.to_json())
    assert acquire(table_with(disk), "mine", "manual", 2_000) == HeldBy(HELD)
    assert disk.writes == []
