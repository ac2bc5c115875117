"""Files below ``_use/`` as anybody may have written them who can write to the table's folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from fake_clock import FakeClock
from folders import RecordingHandle, folder_table
from plan_texts import signed_again
from py4j.protocol import Py4JError
from stored_documents import NOW, PLAN_ID, RUN_ID, TABLE_ID, WRITE_ID, stored_documents

from catalog.errors import PlanUnreadableError, UseError
from catalog.history.event_files import parse_events, parse_marker
from catalog.history.event_store import merge, removable_files
from catalog.history.recent_events import newest_event, recent_failures
from catalog.insights.commit_rows import parse_commits
from catalog.insights.scan_rows import parse_scans
from catalog.state.cancel_requests import can_be_asked, cancel_request, delete_requests, parse_cancel_request
from catalog.state.fleet_ledger import FleetLedger, LedgerState, OpenRun
from catalog.state.lease import acquire, holder_of, leases_of, parse_lease, renewed
from catalog.state.line_folder import GRACE_MILLIS, parse_parts
from catalog.state.plan_claims import DONE, GroupClaims, parse_state, read_group_states
from catalog.state.plan_expiry import delete_plans, expired_plans
from catalog.state.plan_files import PlanGroups, find_plan, parse_group, parse_plan
from catalog.state.protection import parse_protection, protections, unprotect
from catalog.state.reclaimed import oldest_left, parse_reclaimed, record_reclaimed
from catalog.state.state_files import Unreadable
from catalog.state.suspension import parse_suspension, resume, suspension_of
from catalog.state.write_records import forget_write, parse_record, writes_before
from inputs.cases import Reader
from inputs.mutations import json_text, odd_text
from procedures.fleet.outcome_files import parse_turns, turns_of
from procedures.insight.recommendation.column_choice import choice_state
from procedures.lifecycle.vacuum.aborted_rewrites import AbortedRewrites
from procedures.service.health_alerts import crossed_before

_SCAN = {
    "table_id": TABLE_ID, "finished_at": NOW, "scan": 0, "application_id": "local-1", "execution_id": 3,
    "filters": [{"column": "x", "operator": ">", "literal": "1"}], "rows_read": 10, "rows_kept": 1,
}  # fmt: skip
_MARKER = {"table_id": TABLE_ID, "version": 7}
_PARTS = {"merged_at": NOW, "parts": [f"{NOW}-{WRITE_ID}.json", f"{NOW}-x.json"]}
# A file system lists no names with them.
_NOT_IN_NAMES = str.maketrans("", "", "/\0")
_CANCEL = {"at": NOW, "by": "host:1"}


@cache
def _files() -> dict[str, Any]:
    """The state of a table whose files are all sound: documents by path below ``_use/``."""
    names = {
        name.replace("<write id>", WRITE_ID).replace("<time>", str(NOW)): v for name, v in stored_documents().items()
    }
    event = names["events of a commit/" + WRITE_ID + ".json"][0]
    kept = {name: lines[0] for name, lines in names.items() if " " not in name.partition("/")[0]}
    return kept | {
        f"events/{NOW}-{WRITE_ID}.json": event,
        f"events/{NOW + 1}-{'f' * 32}.json": names["events of a failure/f.json"][0],
        f"events/{NOW + 2}-merged-{'d' * 32}.json": event,
        f"events/{NOW + 2}-merged-{'d' * 32}.parts": _PARTS,
        f"consumption/{NOW}-{WRITE_ID}.json": _SCAN,
        f"cancels/{RUN_ID}.json": _CANCEL,
    }


def _is_line(text: str) -> bool:
    text.encode()
    return text.isprintable()


def _parser(name: str, sound: Any, parse: Callable[[str], Any]) -> Reader:
    def read(text: str) -> None:
        found = parse(text)
        assert not isinstance(found, Unreadable) or (_is_line(str(found)) and len(str(found)) < 1_000), found

    return Reader(f"state: {name}", lambda chance: json_text(chance, sound), read, share=2)


def _ledger_reader() -> Reader:
    sound = stored_documents()["<the ledger>/00000000000000000001.json"][0]

    def make(chance: Random) -> list[tuple[str, str]]:
        names = [f"{n:020}.json" for n in range(1, 4)] + [f"{10**19 + 5}.json", "x.json", f"{'１' * 20}.json", "1.json"]
        return [(name, json_text(chance, sound)) for name in chance.sample(names, chance.randrange(1, 4))]

    def read(texts: list[tuple[str, str]]) -> None:
        ledger, run = FleetLedger(_Texts(dict(texts))), OpenRun("mine", "t", "shop", "host:2", NOW + 1)
        assert ledger.change(lambda state: state.begin((), run, NOW)) is None
        assert run in ledger.state().runs
        ledger.change(lambda state: state.spend((), "shop", 5, NOW))
        ledger.change(lambda state: (state.renew(run, NOW).end("mine"), None))
        json.loads(ledger.state().to_json())

    return Reader("state: ledger of budgets", make, read)


class _Texts:
    """The texts of a ledger in memory."""

    def __init__(self, texts: dict[str, str]) -> None:
        self._texts = texts

    def create(self, name: str, text: str) -> bool:
        return self._texts.setdefault(name, text) is text

    def read(self, name: str) -> str | None:
        return self._texts.get(name)

    def names(self) -> list[str]:
        return sorted(self._texts)

    def delete(self, names: list[str]) -> None:
        for name in names:
            self._texts.pop(name, None)


# ------------------------------------------------------------------------------------------------------- whole folders


def _folder(chance: Random) -> dict[str, str | None]:
    """The state of a table: some files are sound, some changed, some missing, some cannot be read (None)."""
    files: dict[str, str | None] = {}
    for name, sound in _files().items():
        kind = chance.random()
        if kind < 0.1:
            continue
        text = json.dumps(sound, separators=(",", ":"))
        files[name] = None if kind > 0.98 else json_text(chance, sound) if kind < 0.5 else text
    plan, part = f"plans/{PLAN_ID}.json", f"plans/{PLAN_ID}/part-00001.jsonl"
    if chance.random() < 0.6 and files.get(plan) and files.get(part):
        # An attacker who knows the format makes the digests match.
        files[plan] = signed_again(files[plan], files[part])
    for _ in range(chance.randrange(3)):
        folder = chance.choice(sorted({name.rpartition("/")[0] for name in _files()}))
        name = odd_text(chance)[:200].translate(_NOT_IN_NAMES) + chance.choice((".json", "", ".parts", ".jsonl"))
        if name not in ("", ".", ".."):
            files[f"{folder}/{name}"] = json_text(
                chance, chance.choice(sorted(_files().items(), key=lambda pair: pair[0]))[1]
            )
    return files


def _use_folder(files: dict[str, str | None]) -> None:
    """Does everything that is done with the state of a table; nothing outside of it is read or written."""
    texts = {f"_use/{name}": Py4JError("denied") if text is None else text for name, text in files.items()}
    handle = RecordingHandle(texts)
    table, clock = folder_table(Path("/t"), handle), FakeClock(NOW)
    refused: list[str] = []

    def attempt(step: Callable[[], object]) -> None:
        try:
            step()
        except UseError as error:
            refused.append(error.code)
        except Py4JError:
            pass  # the file system refuses, and callers turn that into an error with a code

    def leases() -> None:
        for lease in leases_of(table, NOW):
            if can_be_asked(lease.run_id):
                cancel_request(table, lease.run_id)

    def run() -> None:
        acquire(table, "mine", "call", NOW, PLAN_ID)
        with renewed(table, "mine", "call", clock, PLAN_ID):
            pass

    steps: tuple[Callable[[], object], ...] = (
        leases, run, lambda: acquire(table, "other", "call", NOW), lambda: holder_of(table, NOW),
        lambda: suspension_of(table), lambda: resume(table), lambda: protections(table),
        lambda: unprotect(table, "year-end"), lambda: oldest_left(table, TABLE_ID),
        lambda: record_reclaimed(table, TABLE_ID, 9, NOW), lambda: _vacuum(table), lambda: _plan(table),
        lambda: newest_event(table, TABLE_ID), lambda: recent_failures(table, TABLE_ID, 0),
        lambda: removable_files(table, NOW), lambda: merge(table, NOW + 2 * GRACE_MILLIS, 1),
        lambda: turns_of(table), lambda: choice_state(table), lambda: crossed_before(table),
        lambda: delete_requests(table),
    )  # fmt: skip
    for step in steps:
        attempt(step)
    assert handle.outside == set(), handle.outside


def _vacuum(table: Any) -> None:
    records = list(writes_before(table, NOW + 1))
    assert all(len(record.mark) == 36 for record in records)
    list(AbortedRewrites(table, NOW + 1)._file_paths())
    for record in records:
        forget_write(table, record.write_id)
    delete_plans(table, expired_plans(table, NOW + 10, NOW + 10))


def _plan(table: Any) -> None:
    plan = find_plan(table, PLAN_ID, TABLE_ID)
    claims = GroupClaims(table, plan, "mine", "call", FakeClock(NOW))
    for group_id in range(1, min(plan.groups, 5) + 1):
        if claims.take(group_id) is None:
            try:
                group = PlanGroups(table, plan)[group_id]
            except PlanUnreadableError:
                claims.release(group_id)
            else:
                assert len(set(group.paths)) == len(group.paths) == len(group.vectors) > 0
                claims.finish(group_id, DONE, 3)
    read_group_states(table, plan, NOW)


def readers() -> list[Reader]:
    """The readers of state files."""
    files = _files()
    plan, group = files[f"plans/{PLAN_ID}.json"], files[f"plans/{PLAN_ID}/part-00001.jsonl"]
    event = files[f"events/{NOW}-{WRITE_ID}.json"]
    reclaimed = next(text for file, text in files.items() if file.startswith("reclaimed/"))
    parsers = (
        _parser("lease", files["lease.json"], lambda text: parse_lease(text, NOW)),
        _parser("claim", files[f"plans/{PLAN_ID}/groups/1.json"], lambda text: parse_state(text, NOW)),
        _parser("plan", plan, lambda text: parse_plan(signed_again(text, "x"), PLAN_ID)),
        _parser("group of a plan", group, parse_group),
        _parser("protection", files["protected/year-end.json"], lambda text: parse_protection("year-end", text)),
        _parser("reclaimed versions", reclaimed, parse_reclaimed),
        _parser("suspension", files["suspended.json"], parse_suspension),
        _parser("request to cancel", _CANCEL, parse_cancel_request),
        _parser("record of a rewrite", files[f"writes/{WRITE_ID}.json"], lambda text: parse_record(WRITE_ID, text)),
        _parser("events", event, parse_events),
        _parser("marker of events", _MARKER, parse_marker),
        _parser("parts of a merge", _PARTS, lambda text: parse_parts(text, NOW)),
        _parser("commits", files[f"ingestion/{NOW}-{WRITE_ID}.json"], parse_commits),
        _parser("scans", _SCAN, parse_scans),
        _parser("turns", files["fleet.json"], parse_turns),
        _parser("text of a ledger", stored_documents()["<the ledger>/00000000000000000001.json"][0], LedgerState.parse),
    )
    return [*parsers, _ledger_reader(), Reader("state: all files of a table", _folder, _use_folder, share=30)]
