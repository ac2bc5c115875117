"""The Python end of the bridge, which answers the requests of the shim."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any, TypeVar

from pyspark.sql import DataFrame, SparkSession

from catalog.errors import IndexUnreadableError, UnknownNameError, UseError
from catalog.insights.consumption import add_scans
from catalog.jvm.indexed_rows import IndexedRows
from catalog.jvm.java_errors import as_one_line, java_error, known_error
from catalog.jvm.java_time import python_time
from catalog.jvm.kept_rows import KeptRows
from catalog.jvm.python_handler import AskingSession, Refusal
from catalog.predicates.index_conditions import condition_of_json
from catalog.properties.foreign_properties import FOREIGN_PROPERTIES, foreign_warning
from catalog.properties.inherited import InheritedProperties
from catalog.pruning.key_limits import KeyLimits
from catalog.pruning.read_planning import SampleReason, plan_read, plan_sample, refused_sample
from catalog.settings.session_settings import PRUNING_ENABLED, SAMPLING_ENABLED, SESSION_SETTINGS
from catalog.state.reclaimed import check_not_reclaimed
from catalog.system_tables import SYSTEM_TABLES, SystemQuery
from catalog.table.managed_table import ManagedTable
from catalog.virtual_tables import VIRTUAL_TABLES
from procedures.calls.registry import procedure, procedures
from procedures.insight.health.health import table_score
from procedures.process.application import application
from procedures.process.running_services import CatalogChange
from procedures.rewrite.indexed_write import write_indexed
from procedures.rewrite.kept_rows import write_kept_rows
from procedures.rewrite.write_options import check_options
from procedures.rewrite.write_settings import index_settings
from procedures.service.execution import ledger_of
from procedures.service.fleet_overview import fleet_rows, members_of
from procedures.service.manual import trigger
from procedures.service.metadata_changes import check_defaults, check_other_format, checked_change
from procedures.service.service_settings import FLEET_LOCATION
from sql_ext.bridge_arguments import Arguments
from sql_ext.bridge_operations import (
    OPERATIONS,
    CallProcedure,
    CatalogChanged,
    CheckDatabase,
    CheckMetadata,
    CheckOptions,
    CheckOtherFormat,
    CheckSetting,
    CheckTable,
    CheckVersion,
    CheckVirtualTable,
    IndexSettings,
    KeyLimitsOf,
    ManualTrigger,
    PlanKeyJob,
    PlanRead,
    PlanSample,
    ScansRecorded,
    SystemTableRows,
    UnknownProcedure,
    VirtualTableRows,
    WriteCommitted,
    WriteFiles,
    WriteKeptRows,
)

logger = logging.getLogger(__name__)

_A = TypeVar("_A", bound=Arguments)
# The result of an operation: rows, a text, or nothing.
_Answer = DataFrame | str | None


def declarations() -> str:
    """Procedures, virtual tables, system tables, foreign properties and settings as the shim takes them, as JSON."""
    return json.dumps(
        {
            "procedures": [
                {
                    "name": p.name,
                    "doc": f"{p.doc} {p.signature}",
                    "parameters": [
                        {"name": q.name, "type": q.type, "default": q.default_sql, "doc": q.doc} for q in p.parameters
                    ],
                }
                for p in procedures().values()
            ],
            "virtual_tables": {table.name: table.schema for table in VIRTUAL_TABLES.values()},
            "system_tables": {table.name: table.schema for table in SYSTEM_TABLES.values()},
            "foreign_properties": [foreign.name for foreign in FOREIGN_PROPERTIES],
            "settings": [{"name": s.name, "default": s.default, "doc": s.doc} for s in SESSION_SETTINGS],
        }
    )


def answer(operation: str, session: AskingSession, arguments: Mapping[str, Any]) -> Any:
    """Answers one request of the shim; errors become values, so that SQL clients see one line and no stack.

    Args:
        operation: see ``bridge_operations``.
        session: makes the session of the request.
        arguments: by name.

    Returns:
        A DataFrame, a text, None, a ``Refusal``, or the JVM exception that caused the failure.
    """
    try:
        return _HANDLERS[operation](session, OPERATIONS[operation].parse(arguments))
    except Exception as error:  # the JVM must get an answer, whatever happened
        origin = None if isinstance(error, UseError) else java_error(error)
        if origin is not None:
            return origin
        known = known_error(error)
        if known is not error and not isinstance(known, IndexUnreadableError):
            logger.exception("%s failed", operation)
        return Refusal(known.code, known.sql_state, known.message)


_HANDLERS: dict[str, Callable[[AskingSession, Any], _Answer]] = {}


def _answers(
    kind: type[_A],
) -> Callable[[Callable[[SparkSession, _A], _Answer]], Callable[[SparkSession, _A], _Answer]]:
    """Registers a function as the answer to an operation."""

    def register(function: Callable[[SparkSession, _A], _Answer]) -> Callable[[SparkSession, _A], _Answer]:
        _HANDLERS[kind.operation] = lambda session, request: function(session(), request)
        return function

    return register


def _answers_without_session(kind: type[_A]) -> Callable[[Callable[[_A], _Answer]], Callable[[_A], _Answer]]:
    """Registers a function that needs no session, as for the operations of which a query makes many."""

    def register(function: Callable[[_A], _Answer]) -> Callable[[_A], _Answer]:
        _HANDLERS[kind.operation] = lambda _, request: function(request)
        return function

    return register


@_answers(CallProcedure)
def _call(spark: SparkSession, request: CallProcedure) -> DataFrame:
    arguments = {name: python_time(value) for name, value in request.arguments.items()}
    return procedure(request.name).call(spark, arguments)


@_answers_without_session(UnknownProcedure)
def _unknown_procedure(request: UnknownProcedure) -> None:
    procedure(request.name)


@_answers(VirtualTableRows)
def _virtual_table(spark: SparkSession, request: VirtualTableRows) -> DataFrame:
    with as_one_line(spark):
        return VIRTUAL_TABLES[request.kind].rows(ManagedTable.find(spark, request.table))


@_answers(SystemTableRows)
def _system_table(spark: SparkSession, request: SystemTableRows) -> DataFrame:
    with as_one_line(spark):
        app = application()
        score, fleet = partial(table_score, clock=app.clock), partial(_fleet, spark)
        return SYSTEM_TABLES[request.kind].read(
            SystemQuery(spark, list(request.columns), app.automations, app.clock.now(), score, fleet)
        )


def _fleet(spark: SparkSession) -> list[dict[str, Any]]:
    app = application()
    now = app.clock.now()
    ledger = ledger_of(spark, FLEET_LOCATION.optional_of_conf(spark.conf.get))
    rows = fleet_rows(members_of(spark, app.automations, now), ledger.state(), now)
    return [asdict(row) for row in rows]


@_answers(CheckTable)
def _check_table(spark: SparkSession, request: CheckTable) -> None:
    # A damaged log may be found out only when a version is read.
    ManagedTable.find(spark, request.table).state()


@_answers(CheckVirtualTable)
def _check_virtual_table(spark: SparkSession, request: CheckVirtualTable) -> None:
    ManagedTable.find(spark, request.table)
    if request.name.lower() not in VIRTUAL_TABLES:
        raise UnknownNameError.of("virtual table", request.name, VIRTUAL_TABLES)


@_answers(CheckVersion)
def _check_version(spark: SparkSession, request: CheckVersion) -> None:
    table = ManagedTable.find(spark, request.table)
    check_not_reclaimed(table, None if request.version < 0 else request.version)


@_answers_without_session(PlanSample)
def _plan_sample(request: PlanSample) -> str:
    if not SAMPLING_ENABLED.of_conf_or_default(request.settings.get):
        return refused_sample(SampleReason.SWITCHED_OFF, f"{SAMPLING_ENABLED.name} is false")
    return plan_sample(request.configuration, request.lower, request.upper)


@_answers_without_session(PlanRead)
def _plan_read(request: PlanRead) -> str | None:
    if not PRUNING_ENABLED.of_conf_or_default(request.settings.get):
        return None
    return plan_read(request.configuration, condition_of_json(request.conditions))


@_answers_without_session(KeyLimitsOf)
def _key_limits(request: KeyLimitsOf) -> str:
    return KeyLimits.of(request.settings.get).json


@_answers_without_session(PlanKeyJob)
def _plan_key_job(request: PlanKeyJob) -> str | None:
    limits = KeyLimits.of(request.settings.get)
    refused = limits.refused_job(request.scan_bytes, request.side_bytes, request.one_key_share)
    return None if refused is None else refused.value


@_answers_without_session(CheckSetting)
def _check_setting(request: CheckSetting) -> None:
    (setting,) = (setting for setting in SESSION_SETTINGS if setting.name == request.name)
    setting.parse(request.value)


@_answers_without_session(CheckMetadata)
def _check_metadata(request: CheckMetadata) -> str:
    entries = checked_change(request.before, request.after, InheritedProperties(**request.inherited))
    warning = foreign_warning(request.before.configuration, request.after.configuration)
    if warning is not None:
        logger.warning("%s", warning)
    return json.dumps(entries)


@_answers_without_session(CheckDatabase)
def _check_database(request: CheckDatabase) -> None:
    check_defaults(request.properties)


@_answers_without_session(CheckOtherFormat)
def _check_other_format(request: CheckOtherFormat) -> None:
    check_other_format(request.table, request.provider, request.properties)


@_answers_without_session(CheckOptions)
def _check_options(request: CheckOptions) -> None:
    check_options(request.options, request.others, request.of_delta)


@_answers_without_session(IndexSettings)
def _index_settings(request: IndexSettings) -> str:
    settings = index_settings(
        request.options,
        request.configuration,
        request.schema,
        request.partition_columns,
        request.replaces,
        request.writes,
    )
    return json.dumps(settings)


@_answers(WriteFiles)
def _write_files(spark: SparkSession, request: WriteFiles) -> str | None:
    return write_indexed(IndexedRows(spark, request.write), application())


@_answers(WriteKeptRows)
def _write_kept_rows(spark: SparkSession, request: WriteKeptRows) -> str | None:
    return write_kept_rows(KeptRows(spark, request.write), application())


@_answers_without_session(WriteCommitted)
def _write_committed(request: WriteCommitted) -> None:
    application().trees.committed(request.write, request.version)


@_answers_without_session(CatalogChanged)
def _catalog_changed(request: CatalogChanged) -> None:
    application().services.notify(CatalogChange(request.kind, request.name, request.location, request.before))


@_answers(ManualTrigger)
def _manual_trigger(spark: SparkSession, request: ManualTrigger) -> None:
    trigger(spark, request.table, request.properties)


@_answers(ScansRecorded)
def _scans_recorded(spark: SparkSession, request: ScansRecorded) -> None:
    add_scans(ManagedTable.find(spark, request.location), request.lines, application().clock.now())
