"""Places the product's code into the world of a history: replaces what is below it, and changes none of it."""

from __future__ import annotations

import logging
import random
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import procedures.lifecycle.log.consolidation as log_consolidation
from catalog.files.file_rows import LogRowReader
from catalog.files.version_files import VersionFiles
from catalog.history import event_store
from catalog.insights import recent_statements
from catalog.jvm import table_vacuum, table_versions
from catalog.state import fleet_ledger, lease, plan_claims, renewal
from catalog.table import named_files
from catalog.table.managed_table import ManagedTable
from procedures.calls import protect as protect_call
from procedures.calls import vacuum as vacuum_call
from procedures.lifecycle.purge import old_deletes, reclamation
from procedures.lifecycle.vacuum import aborted_rewrites, reasons, retained, vacuum_run
from procedures.loop import group_runs, stored_plan_run, table_optimizer
from procedures.process import application as application_module
from procedures.process.application import Application
from procedures.rewrite import commit as commit_module
from procedures.rewrite import group_rewrite
from procedures.selection import file_places
from simulation.surroundings import run_parts, sessions, statements
from simulation.surroundings.expressions import Functions

if TYPE_CHECKING:
    from simulation.world import World


def _session_of(spark: sessions.Session, *_: object) -> sessions.Session:
    return sessions.Session(spark.world)


# For speed. The results are those of the product: the dataclasses have texts and numbers only, and the other is pure.
def _shallow_dict(value: Any) -> dict[str, object]:
    return dict(vars(value))


_band_limits = cache(file_places.band_limits)


@contextmanager
def placed(world: World) -> Iterator[None]:
    """Places the product's code into a world while the block runs: no code of it is changed."""
    ids = random.Random(f"ids {world.history.seed}")
    functions, threads = Functions, world.threading
    app = Application(clock=world.clock)
    values: list[tuple[Any, str, Any]] = [
        *((module, "asdict", _shallow_dict) for module in (lease, plan_claims, fleet_ledger)),
        (file_places, "band_limits", _band_limits),
        *((module, "threading", threads) for module in (renewal, plan_claims, fleet_ledger, group_runs)),
        *((module, "F", functions) for module in _WITH_FRAMES),
        *((module, "work_session", _session_of) for module in _WITH_SESSIONS),
        *((module, "interrupted", lambda _: False) for module in (table_optimizer, reclamation)),
        *((module, "Progress", run_parts.Progress) for module in (table_optimizer, vacuum_run)),
        (table_optimizer, "SparkThreads", run_parts.Threads),
        (table_vacuum, "data_frame", lambda frame, _: frame),
        (table_vacuum, "java_data", lambda frame: frame),
        (table_vacuum, "java_list", lambda _, values: list(values)),
        (table_versions, "data_frame", lambda frame, _: frame),
        (table_versions, "java_data", lambda frame: frame),
        (commit_module, "events_in_log", sessions.events_in_log),
        (stored_plan_run, "committed_events", sessions.committed_events),
        (event_store, "short_commits", sessions.short_commits),
        (retained, "cloned_files", lambda *_: []),
        (retained, "key_of", lambda column: column),
        (retained, "name_of", lambda column: column),
        (recent_statements, "text_file", statements.text_file),
        (recent_statements, "exists", statements.exists),
        (recent_statements, "_files", statements.files_of),
        (recent_statements, "_KEPT_COMMITS", recent_statements._KeptCommits()),
        (LogRowReader, "ranged_columns", property(lambda _: ("id",))),
        (ManagedTable, "find", classmethod(lambda _, spark, __: spark.table)),
        (VersionFiles, "table", lambda files: files.state.file_table()),
        (uuid, "uuid4", lambda: uuid.UUID(int=ids.getrandbits(128), version=4)),
        (application_module, "_active", [app]),
        *world.observation.replacements(),
    ]
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with replaced(values):
            yield
    finally:
        logging.disable(before)


_WITH_FRAMES = (
    aborted_rewrites,
    table_vacuum,
    table_versions,
    retained,
    reasons,
    vacuum_run,
    old_deletes,
    protect_call,
    commit_module,
    stored_plan_run,
    named_files,
)
_WITH_SESSIONS = (group_rewrite, reclamation, vacuum_call, log_consolidation)


@contextmanager
def replaced(values: Sequence[tuple[Any, str, Any]]) -> Iterator[None]:
    """Gives attributes other values while the block runs."""
    before = [(owner, name, owner.__dict__[name]) for owner, name, _ in values]
    for owner, name, value in values:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)
