"""What earlier builds stored with a table is read; the documents are those of ``tests/contracts/documents.json``."""

import json
from pathlib import Path

import pytest
from folders import memory_table
from stored_documents import NOW, PLAN_ID, RUN_ID, TABLE_ID, WRITE_ID

from catalog.history.event_files import StoredEvent, parse_event
from catalog.insights.commit_rows import parse_commits
from catalog.state.lease import read_lease
from catalog.state.plan_claims import DONE, read_group_state
from catalog.state.plan_files import PlanGroups, find_plan
from catalog.state.protection import protections
from catalog.state.reclaimed import oldest_left
from catalog.state.suspension import suspension_of
from catalog.state.write_records import writes_before
from procedures.service.health_alerts import crossed_before

PINNED = Path(__file__).resolve().parents[2] / "contracts" / "documents.json"
DOCUMENTS = json.loads(PINNED.read_text(encoding="utf-8"))


def _text(name):
    return "\n".join(json.dumps(line, separators=(",", ":")) for line in DOCUMENTS[name])


@pytest.fixture(scope="module")
def table():
    return memory_table({name.replace("<write id>", WRITE_ID): _text(name) for name in DOCUMENTS})


def test_the_lease_is_read(table):
    lease = read_lease(table, NOW)
    assert (lease.run_id, lease.holder, lease.plan) == (RUN_ID, "host:1", PLAN_ID)


def test_the_suspension_is_read(table):
    assert suspension_of(table).note.startswith("suspended by host:1 at ")


def test_the_protection_is_read(table):
    (protection,) = protections(table)
    assert (protection.name, protection.version, protection.by) == ("year-end", 7, "host:1")


def test_the_oldest_version_left_is_read(table):
    assert oldest_left(table, TABLE_ID) == 5


def test_the_record_of_a_write_is_read(table):
    (record,) = writes_before(table, NOW + 1)
    assert (record.write_id, record.folders) == (WRITE_ID, ("", "day=1"))


def test_the_plan_and_its_group_are_read(table):
    plan = find_plan(table, PLAN_ID, TABLE_ID)
    (group,) = PlanGroups(table, plan)
    assert group.runs == [("a.parquet", "b.parquet")]
    state = read_group_state(table, plan, 1, NOW)
    assert (state.state, state.version) == (DONE, 8)


def test_the_alerts_are_read(table):
    assert crossed_before(table) == {"score"}


def test_the_row_of_a_commit_is_read():
    (commit,) = parse_commits(_text("ingestion/<time>-<write id>.json"))
    assert (commit.row.version, commit.row.overlap_share) == (3, 0.5)


@pytest.mark.parametrize("name", [name for name in DOCUMENTS if name.startswith("events")])
def test_events_are_read(name):
    event = parse_event(_text(name))
    assert isinstance(event, StoredEvent)
    assert event.table_id == TABLE_ID
