"""Races that the simulator has found, staged step by step."""

import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from catalog.errors import ConcurrentChangeError, ProtectionError, VersionError
from catalog.state import protection
from catalog.state.plan_claims import FAILED, GroupClaims, GroupState, read_group_state, state_file
from catalog.state.plan_files import StoredPlan
from catalog.state.protection import protections
from catalog.state.reclaimed import oldest_left, record_reclaimed
from catalog.state.write_records import WriteRecord, record_write
from catalog.table.managed_table import ManagedTable
from procedures.calls.protect import protect
from procedures.calls.purge import purge
from procedures.calls.vacuum import vacuum
from procedures.declare.declaration import Call
from procedures.declare.runs import Run
from procedures.lifecycle.purge.reclamation import (
    COMPACTION,
    EVENTS,
    FILES,
    LOG,
    VERSIONS,
    Reclamation,
    ReclamationSettings,
)
from procedures.lifecycle.vacuum.cutoff import Cutoff
from procedures.lifecycle.vacuum.retained import RetainedVersions
from simulation.actors.maintenance import purge_once
from simulation.delta_log import AddedFile, Commit
from simulation.faults import StoreError
from simulation.history import Violation
from simulation.surroundings import table_state
from simulation.surroundings.paths import ROOT
from simulation.surroundings.placement import placed
from simulation.surroundings.sessions import Session
from simulation.world import HOUR, World


@pytest.fixture
def world():
    """A table of twenty appends, of which every file is live; no faults."""
    made = World(1, Counter())
    made.faults.kinds = frozenset()
    with placed(made):
        for number in range(20):
            made.scheduler.now += HOUR
            rows = made.new_rows(2)
            file = made.new_data(f"f{number}", rows, "append")
            commit = Commit(-1, -1, "WRITE", (file,), data_change=True, inserted=frozenset(rows))
            made.log.commit(commit, made.log.newest)
        yield made


def purged(world, observe, part_of=None):
    session = Session(world)
    cutoff = Cutoff.of_retention(3.0, world.clock.now())
    settings = ReclamationSettings(cutoff, whole_log=True)
    return Reclamation(session.table, settings, "call", {}, observe, part_of).run()


@pytest.mark.parametrize("version", [0, 7])
def test_a_version_that_is_protected_when_the_log_is_about_to_be_cleaned_up_keeps_its_entries(world, version):
    call = Call(Session(world), {}, "call")
    purged(world, lambda step: protect(call, "t", version, "mine") if step == LOG else None)
    assert world.log.oldest() == version
    assert world.log.can_make(version)


def test_a_version_whose_entries_are_being_deleted_cannot_be_protected(world):
    call = Call(Session(world), {}, "call")

    def observe(step):
        if step == "log entries":
            with pytest.raises(VersionError, match="reclaimed"):
                protect(call, "t", 3, "mine")

    purged(world, observe)
    assert world.log.oldest() > 3


def test_two_protections_that_are_being_made_do_not_vouch_for_each_other(world, monkeypatch):
    call, make = Call(Session(world), {}, "call"), protection.protect

    def make_both(*given):
        monkeypatch.setattr(protection, "protect", make)
        made = make(*given)
        with pytest.raises(VersionError, match="reclaimed"):
            protect(call, "t", 3, "other")
        return made

    def observe(step):
        if step == "log entries":
            monkeypatch.setattr(protection, "protect", make_both)
            with pytest.raises(VersionError, match="reclaimed"):
                protect(call, "t", 3, "mine")

    purged(world, observe)
    assert protections(call.spark.table) == ()


@pytest.mark.parametrize(
    ("stopped_at", "done"),
    [
        (COMPACTION, [COMPACTION]),
        (FILES, [COMPACTION, FILES]),
        (LOG, [COMPACTION, FILES, LOG]),
        (EVENTS, [COMPACTION, FILES, LOG, EVENTS]),
    ],
)
def test_a_reclamation_that_is_asked_to_stop_ends_after_its_step_and_the_next_one_goes_on(world, stopped_at, done):
    run = Run("t", ROOT, "automatic", {}, world.clock.now())
    steps = []

    def observe(step):
        steps.append(step)
        if step == stopped_at:
            run.request_stop("SUSPENDED", "suspended")

    rows = purged(world, observe, run)
    assert [row.step for row in rows] == [*done, VERSIONS]
    assert [step for step in steps if step in (COMPACTION, FILES, LOG, EVENTS)] == done
    assert rows[-1].oldest_version == (world.log.oldest() if LOG in done else 0)
    assert (world.log.oldest() > 0) == (LOG in done)
    assert [row.step for row in purged(world, lambda _: None)] == [COMPACTION, FILES, LOG, EVENTS, VERSIONS]
    assert world.log.oldest() > 3
    assert world.log.can_make(world.log.newest)


def test_a_table_that_takes_the_place_of_another_one_keeps_its_history(world, monkeypatch):
    def observe(step):
        if step == COMPACTION:
            monkeypatch.setattr(table_state, "TABLE_ID", "another")

    before = set(world.store.objects)
    with pytest.raises(ConcurrentChangeError, match="replaced"):
        purged(world, observe)
    assert before <= set(world.store.objects)
    assert world.log.oldest() == 0


def test_a_purge_that_keeps_more_deletes_the_entries_that_an_interrupted_one_has_left(world, monkeypatch):
    session = Session(world)
    world.scheduler.process.memory["cutoff"] = lambda version: version >= 15
    before = world.faults.before

    def interrupted(phase):
        if phase == "clean log" and 4 not in world.log.stored:
            raise StoreError("503 SlowDown")
        before(phase)

    with monkeypatch.context() as patch:
        patch.setattr(world.faults, "before", interrupted)
        with pytest.raises(StoreError):
            purge(Call(session, {}, "call"), "t", older_than=15, force=True)
    assert (min(world.log.stored), world.log.oldest()) == (5, 15)
    purge_once(world, session, 12, force=True)
    assert (min(world.log.stored), world.log.oldest()) == (15, 15)


def test_the_limit_of_a_purge_that_is_suspended_at_its_beginning_is_by_the_clock_afterwards(world, monkeypatch):
    world.scheduler.now += HOUR - 60_000
    before = world.faults.before

    def suspended(phase):
        before(phase)
        monkeypatch.setattr(world.faults, "before", before)
        world.scheduler.now += 120_000

    monkeypatch.setattr(world.faults, "before", suspended)
    purge_once(world, Session(world), 4, force=True)
    # The commit of version 16 became four hours old meanwhile.
    assert world.log.oldest() == 16


def test_a_deletion_of_the_entries_of_a_retained_version_is_a_violation(world):
    session = Session(world)
    world.scheduler.process.memory["cutoff"] = lambda version: version >= 14
    versions = session.table.handle.versions(session)
    versions.checkpoint(5)
    versions.checkpoint(15)
    versions.delete_log_before(5)
    with pytest.raises(Violation, match="the retained version 14 is lost"):
        versions.delete_log_before(15)


def test_a_version_that_is_committed_and_protected_during_a_vacuum_is_not_lost(world):
    session = Session(world)
    retained = RetainedVersions(session.table, session, Cutoff.of_retention(3.0, world.clock.now()))
    assert (retained.oldest, retained.newest) == (0, 19)
    world.log_operation("SET TBLPROPERTIES", {})
    protect(Call(session, {}, "call"), "t", 20, "mine")
    assert [protection.version for protection in retained.protected()] == [20]
    world.store.objects["sim:/t/_use/protected/mine.json"].data = '{"version": 30, "since": 1, "by": "me"}'
    with pytest.raises(ProtectionError, match=r"Version 30, .* has versions 0 to 20"):
        retained.protected()


@pytest.mark.parametrize("unreadable", ["reclaimed", "protected/other.json"])
def test_a_version_is_not_protected_while_it_is_unknown_whether_it_is_being_deleted(world, monkeypatch, unreadable):
    session = Session(world)
    call = Call(session, {}, "call")

    def refusing(answer):
        def refused(path, phase):
            if path.endswith(unreadable):
                raise StoreError("503 SlowDown")
            return answer(path, phase)

        return refused

    protect(call, "t", 19, "other")

    def observe(step):
        if step == "log entries":
            with monkeypatch.context() as patch:
                for name in ("read_text", "names"):
                    patch.setattr(world.store, name, refusing(getattr(world.store, name)))
                with pytest.raises(ProtectionError, match=f"{unreadable} cannot be read"):
                    protect(call, "t", 3, "mine")

    purged(world, observe)
    assert [protection.name for protection in protections(session.table)] == ["other"]


def test_a_suspended_reclamation_does_not_replace_the_record_of_a_later_one(world, monkeypatch):
    """A vacuum that has looked at the record, and is suspended until another one has deleted files."""
    table, table_id = Session(world).table, "t"
    create = ManagedTable.create_state

    def late(self, file, text):
        monkeypatch.setattr(ManagedTable, "create_state", create)
        record_reclaimed(table, table_id, 12, world.clock.now())
        return create(self, file, text)

    monkeypatch.setattr(ManagedTable, "create_state", late)
    record_reclaimed(table, table_id, 7, world.clock.now())
    assert oldest_left(table, table_id) == 12
    assert oldest_left(table, "another") == 0
    odd = "../../" * 20
    assert (record_reclaimed(table, odd, 3, world.clock.now()), oldest_left(table, odd)) == (3, 3)
    record_reclaimed(table, table_id, 15, world.clock.now())
    assert [name[:19].lstrip("0") for name in table.list_state("reclaimed")] == ["3", "12", "15"]


@pytest.mark.parametrize("purges", [False, True])
def test_the_record_of_a_killed_rewrite_stays_as_long_as_its_files(world, purges):
    """A vacuum in mode lite finds them by nothing else."""
    session = Session(world)
    call = Call(session, {}, "call")
    world.scheduler.process.memory["cutoff"] = lambda version: version == world.log.newest
    record = WriteRecord("3106eb8e31f345b6984d207b8e24cc6f", world.clock.now(), ("",))
    record_write(session.table, record)
    # It is killed four hours later.
    world.scheduler.now += 4 * HOUR
    file = f"{ROOT}/part-00000-{record.mark}-use0.parquet"
    world.store.put_data(file, (1, 2), 20, "write rows")
    world.scheduler.now += HOUR

    if purges:
        purge(call, "t", older_than=world.log.newest, force=True)
    else:
        vacuum(call, "t", retention_hours=3.0, mode="lite")
    assert file in world.store.objects
    assert session.table.list_state("writes") == [f"{record.write_id}.json"]

    world.scheduler.now += 30 * 24 * HOUR
    vacuum(call, "t", retention_hours=3.0, mode="lite")
    assert file not in world.store.objects
    assert session.table.list_state("writes") == []


def test_the_record_of_a_committed_rewrite_goes_although_its_files_are_live(world):
    """Its process was killed between the commit and the end; each later vacuum would list its folders."""
    session = Session(world)
    world.scheduler.process.memory["cutoff"] = lambda version: version == world.log.newest
    records = [WriteRecord(f"{number:032x}", world.clock.now(), ("",)) for number in (1, 2)]
    for record in records:
        record_write(session.table, record)
    rows = world.new_rows(2)
    file = AddedFile(f"part-00000-{records[0].mark}-use0.parquet", 20, 2, world.clock.now())
    world.store.put_data(f"{ROOT}/{file.path}", tuple(rows), 20, "write rows")
    committed = Commit(-1, -1, "WRITE", (file,), data_change=True, inserted=frozenset(rows))
    world.log.commit(committed, world.log.newest)
    world.scheduler.now += 4 * HOUR
    # The other one is killed, and its file is young.
    young = f"{ROOT}/part-00000-{records[1].mark}-use0.parquet"
    world.store.put_data(young, (1, 2), 20, "write rows")

    vacuum(Call(session, {}, "call"), "t", retention_hours=3.0, mode="lite")
    assert session.table.list_state("writes") == [f"{records[1].write_id}.json"]
    assert {f"{ROOT}/{file.path}", young} <= world.store.objects.keys()


@pytest.mark.parametrize("seed", range(20))
def test_a_group_that_has_failed_is_taken_over_by_one_run(seed):
    """The seed decides the order of the steps of three runs."""
    world = World(seed, Counter())
    world.faults.kinds = frozenset()
    plan, taken = StoredPlan("0" * 12, "t", 1, 1, 1, 9, (1,)), []

    def take(run_id):
        def work(session):
            if GroupClaims(session.table, plan, run_id, "call", world.clock).take(1) is None:
                taken.append(run_id)

        return work

    with placed(world):
        table = Session(world).table
        table.write_state(state_file(plan, 1), GroupState(FAILED, "first", "h:1", "call", 1, 2, 3).to_json())
        for run_id in ("a", "b", "c"):
            world.process(run_id, take(run_id))
        world.scheduler.run()
        assert [read_group_state(table, plan, 1).run_id] == taken
        assert table.list_state(f"{plan.folder}/groups") == ["1.json"]
