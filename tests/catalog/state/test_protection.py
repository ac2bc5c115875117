"""Protections and the record of what was reclaimed: whatever the files hold, nothing is deleted by mistake."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from broken_texts import broken_texts
from folders import MemoryHandle, folder_table, memory_table
from hypothesis import given, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JError

from catalog.errors import InvalidArgumentError, ProtectionError, UnknownNameError, VersionError, WriteDeniedError
from catalog.history.event_expiry import delete_expired, expired_files
from catalog.state.protection import (
    Protection,
    check_name,
    confirm,
    confirmed_protections,
    parse_protection,
    protect,
    protections,
    unprotect,
)
from catalog.state.reclaimed import Reclaimed, check_not_reclaimed, oldest_left, parse_reclaimed, record_reclaimed
from catalog.state.state_files import Unreadable

NOW = 1_700_000_000_000
STORED = {"version": 7, "since": NOW, "by": "h:1"}
RECLAIMED = {"table_id": "t", "oldest": 5, "at": NOW}
many = settings(max_examples=300, deadline=None)


@many
@given(broken_texts(STORED))
def test_a_text_is_a_protection_or_stops_every_deletion(text):
    found = parse_protection("a", text)
    table = memory_table({"protected/a.json": text})
    if isinstance(found, Unreadable):
        with pytest.raises(ProtectionError, match=r"protected/a\.json cannot be read"):
            protections(table)
    else:
        assert found.version >= 0
        assert protections(table) == (found,)
    assert unprotect(table, "a") == (None if isinstance(found, Unreadable) else found)
    assert protections(table) == ()


@pytest.mark.parametrize("file", ["a.txt", ".json", "..json", "a b.json", "a"])
def test_a_file_of_another_name_stops_every_deletion(file):
    with pytest.raises(ProtectionError):
        protections(memory_table({f"protected/{file}": json.dumps(STORED)}))


def test_a_file_that_cannot_be_accessed_stops_every_deletion():
    with pytest.raises(ProtectionError, match="NOT_ACCESSIBLE"):
        protections(memory_table({"protected/a.json": Py4JError("denied")}))


class FailingHandle(MemoryHandle):
    """Stores a part of each new text, and then fails."""

    share = 0.0

    def create_text(self, file, text):
        super().create_text(file, text[: round(len(text) * self.share)])
        raise Py4JError("No space left on device")


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_write_that_fails_leaves_nothing_that_stops_deletions(share):
    handle = FailingHandle({})
    handle.share = share
    table = folder_table(Path("/t"), handle)
    with pytest.raises(WriteDeniedError, match="No space left on device"):
        protect(table, "a", 3, NOW)
    assert (protections(table), handle.files) == ((), {})


def test_a_write_whose_answer_is_lost_protects():
    handle = FailingHandle({})
    handle.share = 1.0
    table = folder_table(Path("/t"), handle)
    assert protections(table) == () != (protect(table, "a", 3, NOW),) == protections(table)


def test_a_failed_write_leaves_the_file_of_another_process():
    other = json.dumps(STORED)
    handle = MemoryHandle({"_use/protected/a.json": other})

    def fail(file, text):
        raise Py4JError("denied")

    handle.create_text = fail
    with pytest.raises(WriteDeniedError):
        protect(folder_table(Path("/t"), handle), "a", 3, NOW)
    assert handle.files == {"_use/protected/a.json": other}


class ReusedHandle(MemoryHandle):
    """Another process uses a name again as soon as its file is deleted, or the file stays."""

    stays = False

    def delete(self, file):
        self.files[file] = self.files[file] if self.stays else json.dumps(STORED | {"version": 5})


def test_a_name_that_another_process_uses_again_was_free():
    handle = ReusedHandle({"_use/protected/a.json": json.dumps(STORED)})
    table = folder_table(Path("/t"), handle)
    assert unprotect(table, "a").version == STORED["version"] != 5
    assert [protection.version for protection in protections(table)] == [5]
    handle.stays = True
    with pytest.raises(WriteDeniedError, match="cannot be deleted"):
        unprotect(table, "a")


def test_names_are_used_once():
    table = memory_table({})
    first = protect(table, "b", 3, NOW)
    second = protect(table, "a", 3, NOW)
    assert protections(table) == (second, first)
    with pytest.raises(ProtectionError, match=r"name = 'b' is used already \(version 3, protected as 'b'") as error:
        protect(table, "b", 4, NOW)
    assert error.value.code == "USE_ALREADY_PROTECTED"
    assert unprotect(table, "b") == first
    with pytest.raises(UnknownNameError, match="Known: a"):
        unprotect(table, "b")


@pytest.mark.parametrize("name", ["", ".", "..", "-a", "_a", "a/b", "a b", "ä", "a" * 101, "a\n"])
def test_names_that_are_not_accepted(name):
    with pytest.raises(InvalidArgumentError, match="1 to 100 letters"):
        check_name(name)


@given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", fullmatch=True))
def test_names_that_are_accepted(name):
    check_name(name)
    made = protect(table := memory_table({}), name, 1, NOW)
    assert protections(table) == (made,) == (Protection(name, 1, NOW, made.by, made.id),)


def test_a_protection_counts_as_kept_once_it_is_confirmed():
    table = memory_table({"protected/former.json": json.dumps(STORED)})
    made = protect(table, "new", 8, NOW)
    assert [p.name for p in confirmed_protections(table)] == ["former"]
    confirm(table, made)
    assert [p.name for p in confirmed_protections(table)] == ["former", "new"]
    unprotect(table, "new")
    again = protect(table, "new", 8, NOW)
    assert again.id != made.id
    assert [p.name for p in confirmed_protections(table)] == ["former"]
    assert table.list_state("confirmed") == []


def test_the_confirmation_of_a_protection_is_no_path():
    text = json.dumps(STORED | {"id": "../lease.json"})
    table = memory_table({"protected/a.json": text, "lease.json": "{}"})
    unprotect(table, "a")
    assert table.read_state("lease.json") == "{}"


@many
@given(broken_texts(RECLAIMED))
def test_the_record_never_goes_down(text):
    table = memory_table({"reclaimed.json": text})
    found = parse_reclaimed(text)
    before = found.oldest if isinstance(found, Reclaimed) and found.table_id == "t" else 0
    assert oldest_left(table, "t") == before
    assert oldest_left(table, "another") in (0, before if not isinstance(found, Reclaimed) else found.oldest)
    for oldest in (3, 9, 4):
        before = max(before, oldest)
        assert record_reclaimed(table, "t", oldest, NOW) == before == oldest_left(table, "t")


def test_versions_before_the_oldest_left_are_refused():
    table = memory_table({})
    table.handle.state = lambda _session: SimpleNamespace(facts=lambda: SimpleNamespace(table_id="t"))
    check_not_reclaimed(table, 0)
    record_reclaimed(table, "t", 3, NOW)
    check_not_reclaimed(table, 3)
    with pytest.raises(VersionError, match=r"\b2\b"):
        check_not_reclaimed(table, 2)


def test_old_events_go_with_their_lists():
    listed = "0" * 32
    event = json.dumps({"write_id": "w", "overflow_file": f"lists/{listed}.json"})
    odd = json.dumps({"write_id": "w", "overflow_file": "../../_delta_log/00000000000000000000.json"})
    old = {"events/10-w.json": event, "events/19-merged-x.json": f"{odd}\nnull\n{{", "events/19-merged-x.parts": "{}"}
    young = {"events/20-w.json": event, "events/notes.txt": "", f"lists/{'1' * 32}.json": "{}"}
    table = memory_table({**old, **young, f"lists/{listed}.json": "{}"})
    assert expired_files(table, 20) == sorted(old)
    assert delete_expired(table, 20) == len(old) + 1
    assert set(table.handle.files) == {f"_use/{name}" for name in young}
