"""One document of each kind that is stored with a table, made by the functions that write them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import UUID

from fake_clock import FakeClock
from folders import MemoryHandle, folder_table

from catalog.errors import InvalidArgumentError
from catalog.history import event_store
from catalog.history.event_store import record, record_failure, record_ignored, record_vacuum
from catalog.history.events import (
    FileFacts,
    FilesStats,
    FilesTotals,
    OptimizationEvent,
    event_of_vacuum,
    event_without_commit,
)
from catalog.insights.commit_rows import CommitRow, StoredCommit, merged_lines
from catalog.state.fleet_ledger import LedgerState, OpenRun, Spending
from catalog.state.lease import acquire
from catalog.state.plan_claims import DONE, GroupClaims
from catalog.state.plan_files import StoredGroup, StoredPlan, store_plan
from catalog.state.protection import confirm, protect
from catalog.state.reclaimed import record_reclaimed
from catalog.state.suspension import suspend
from catalog.state.write_records import WriteRecord, record_write
from procedures.fleet.outcome_files import TurnRecord, store_turns
from procedures.fleet.outcomes import Outcome
from procedures.insight.recommendation.column_choice import ChoiceState, Chosen, Proposal
from procedures.service.health_alerts import look

NOW = 1_700_000_000_000
TABLE_ID = "0f8fad5b-d9cb-469f-a165-70867728950e"
WRITE_ID = "7c9e6679742540de944be07fc1f90ae7"
PLAN_ID = "0123456789ab"
RUN_ID = "run-1"
PROTECTION_ID = "b3a1c2d4e5f60718293a4b5c6d7e8f90"
FILES = (FileFacts("a.parquet", 100, 10, (6, 4), ("", "w"), 1), FileFacts("b%20c.parquet", 50, None, (), (), -1))


class _NoAlerts:
    def send(self, notification: object) -> None:
        """Nobody listens."""


class _Policy:
    def crossed(self, values: dict[str, float]) -> dict[str, float]:
        """Every threshold."""
        return dict.fromkeys(values, 50.0)


def committed_event() -> OptimizationEvent:
    """An event with the statistics of two files in and one out."""
    return OptimizationEvent(
        optimization_name="LeveledCompaction",
        write_id=WRITE_ID,
        table_id=TABLE_ID,
        revision_id=1,
        started_at=NOW,
        finished_at=NOW + 5,
        input_files_stats=FilesStats.of(FILES),
        output_files_stats=FilesStats.of(FILES[:1]),
        trigger="call",
        reason="LEVELED_COMPACTION",
        parameters={"bytes_per_iter": "1"},
        table_bytes=150,
    )


def stored_documents() -> dict[str, Any]:
    """The documents by the names of their files below ``_use/``; ids and times in names are replaced."""
    handle = MemoryHandle({})
    table, clock = folder_table(Path("/t"), handle), FakeClock(NOW)
    with patch.object(event_store, "merge"), patch("catalog.state.lease.this_process", lambda: "host:1"):
        _events(table, clock)
        acquire(table, RUN_ID, "call", NOW, PLAN_ID)
    with (
        patch("catalog.state.suspension.this_process", lambda: "host:1"),
        patch("catalog.state.protection.this_process", lambda: "host:1"),
        patch("catalog.state.protection.uuid.uuid4", lambda: UUID(PROTECTION_ID)),
        patch("catalog.state.plan_claims.this_process", lambda: "host:1"),
    ):
        suspend(table, NOW)
        confirm(table, protect(table, "year-end", 7, NOW))
        plan = _plan(table)
        claims = GroupClaims(table, plan, RUN_ID, "call", clock)
        assert claims.take(1) is None
        claims.finish(1, DONE, version=8)
    record_reclaimed(table, TABLE_ID, 5, NOW)
    record_write(table, WriteRecord(WRITE_ID, NOW, ("", "day=1")))
    look(table, _Policy(), {"score": 40.0}, NOW, _NoAlerts())  # type: ignore[arg-type]
    ChoiceState(120, NOW, Proposal("a,b", NOW, 120, 0.35, 0.041), Chosen("a", NOW)).put(table)
    row = CommitRow(3, NOW, "Spark", None, "WRITE", True, 2, 150, None, 2, 50, 2, 2, 0.5, 60_000)
    store_turns(table, TurnRecord(NOW, (Outcome(NOW, 150, 0.5, 0.75, 1000.0, 0.25),)))
    open_run = OpenRun(RUN_ID, "spark_catalog.shop.t", "shop", "host:1", NOW + 1)
    ledger = LedgerState((Spending(NOW, "shop", 150),), (open_run,), {"database shop": NOW})
    table.write_state("<the ledger>/00000000000000000001.json", ledger.to_json())
    table.write_state(f"ingestion/{NOW}-{WRITE_ID}.json", merged_lines([StoredCommit.of(TABLE_ID, row)]).lines[0])
    texts = {_name(path.removeprefix("_use/")): text for path, text in handle.files.items() if isinstance(text, str)}
    return {name: [json.loads(line) for line in text.split("\n")] for name, text in sorted(texts.items())}


def _name(path: str) -> str:
    return re.sub(r"[0-9a-f]{32}", "<write id>", path.replace(str(NOW), "<time>"))


def _events(table: Any, clock: FakeClock) -> None:
    event = committed_event()
    table.write_state("commit, operation parameter event", event.commit_json())
    record(table, event, 8, clock)
    table.write_state(f"events of a commit/{WRITE_ID}.json", table.read_state(f"events/{NOW}-{WRITE_ID}.json"))
    times = (NOW, NOW + 5)
    failed = event_without_commit(
        "LeveledCompaction", "call", "X", {}, times, FilesTotals.of(FILES), TABLE_ID, "f" * 32
    )
    record_failure(table, failed, InvalidArgumentError("no"), clock)
    table.write_state("events of a failure/f.json", table.read_state(f"events/{NOW}-{'f' * 32}.json"))
    ignored = event_without_commit("optimize", "manual", "LEASE_HELD", {}, times, None, TABLE_ID, "e" * 32)
    record_ignored(table, ignored, clock)
    table.write_state("events of an ignored trigger/e.json", table.read_state(f"events/{NOW}-{'e' * 32}.json"))
    vacuum = event_of_vacuum("call", "VACUUM", {}, times, FilesTotals(2, 150), 1_000)
    with patch.object(table.__class__, "snapshot", lambda _: _Snapshot()):
        record_vacuum(table, vacuum, 9, clock)
    name = f"events/{NOW}-{vacuum.write_id}.json"
    table.write_state("events of a vacuum/v.json", table.read_state(name).replace(vacuum.write_id, "d" * 32))
    for stored in (f"{NOW}-{WRITE_ID}", f"{NOW}-{'f' * 32}", f"{NOW}-{'e' * 32}", f"{NOW}-{vacuum.write_id}"):
        table.delete_state(f"events/{stored}.json")
    table.write_state(f"lists/{WRITE_ID}.json", event.to_json())


class _Snapshot:
    table_id = TABLE_ID


def _plan(table: Any) -> StoredPlan:
    group = StoredGroup(1, "SMALL", 0, "day=1", ("a.parquet", "b.parquet"), ("", "v1"), (2,), 150, 1, 2, 1)
    return store_plan(table, StoredPlan(PLAN_ID, TABLE_ID, 7, NOW, 1_000, 0, ()), [group])
