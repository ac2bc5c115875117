"""Races that the simulator has found, staged step by step."""

import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from catalog.errors import ProtectionError, VersionError
from catalog.state.protection import protections
from procedures.calls.protect import protect
from procedures.declare.declaration import Call
from procedures.lifecycle.purge.reclamation import LOG, Reclamation, ReclamationSettings
from procedures.lifecycle.vacuum.cutoff import Cutoff
from procedures.lifecycle.vacuum.retained import RetainedVersions
from simulation.delta_log import Commit
from simulation.faults import StoreError
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


def purged(world, observe):
    session = Session(world)
    cutoff = Cutoff.of_retention(3.0, world.clock.now())
    settings = ReclamationSettings(cutoff, whole_log=True)
    return Reclamation(session.table, settings, "call", {}, observe).run()


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


@pytest.mark.parametrize("unreadable", ["reclaimed.json", "protected/other.json"])
def test_a_version_is_not_protected_while_it_is_unknown_whether_it_is_being_deleted(world, monkeypatch, unreadable):
    session = Session(world)
    call, read = Call(session, {}, "call"), world.store.read_text

    def refused(path, phase):
        if path.endswith(unreadable):
            raise StoreError("503 SlowDown")
        return read(path, phase)

    protect(call, "t", 19, "other")

    def observe(step):
        if step == "log entries":
            with monkeypatch.context() as patch:
                patch.setattr(world.store, "read_text", refused)
                with pytest.raises(ProtectionError, match=f"{unreadable} cannot be read"):
                    protect(call, "t", 3, "mine")

    purged(world, observe)
    assert [protection.name for protection in protections(session.table)] == ["other"]
