"""The Python API of USE for Spark: configure and attach a session, inspect and maintain tables."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sql_ext.installation import check_packages  # isort: split

check_packages()

if TYPE_CHECKING:
    from catalog.errors import UseError
    from catalog.pruning.join_reasons import JoinReason
    from catalog.pruning.read_planning import SampleReason
    from procedures.calls.cancel import CancelRow
    from procedures.calls.clustering_information import ClusteringInformationRow
    from procedures.calls.drop_index import DropIndexRow
    from procedures.calls.index import IndexRow
    from procedures.calls.plan import PlanRow
    from procedures.calls.protect import ProtectRow
    from procedures.calls.quantiles import QuantilesRow
    from procedures.calls.recommend import RecommendRow
    from procedures.calls.report import ReportRow
    from procedures.calls.resume import ResumeRow
    from procedures.calls.status import StatusRow
    from procedures.calls.suspend import SuspendRow
    from procedures.calls.unprotect import UnprotectRow
    from procedures.declare.declaration import Call, Procedure
    from procedures.declare.signature import Parameter
    from procedures.groups.group import Concatenate, FileRun, InputFile, Relayout, SkippedGroup
    from procedures.groups.strategy import TableFiles
    from procedures.insight.approximation.answer_rows import ApproximateRow
    from procedures.insight.checking.problem import CheckRow
    from procedures.insight.health.diagnosis import HealthRow
    from procedures.insight.skipping.explanation import ExplainSkippingRow
    from procedures.insight.skipping.reasons import SkippingReason
    from procedures.lifecycle.log.consolidation import ConsolidateLogRow
    from procedures.lifecycle.purge.reclamation import PurgeRow
    from procedures.lifecycle.vacuum.vacuum_run import VacuumRow
    from procedures.loop.report import OptimizeRow
    from procedures.process.notifications import Notification, Subscription
    from procedures.selection import SelectionSettings, Strategy, register_strategy
    from sql_ext.attachment import attach, call, register_procedure
    from sql_ext.configuration import configure, spark_conf
    from sql_ext.dataframe_methods import tolerance_by_group
    from sql_ext.facade.all_tables import consumption, fleet, ingestion, metastore_summary, optimizations, status
    from sql_ext.facade.inspection import Inspect
    from sql_ext.facade.maintenance import Maintenance
    from sql_ext.facade.table import Table, table
    from sql_ext.facade.table_report import TableReport
    from sql_ext.local_session import session
    from sql_ext.notifications import on_event
    from sql_ext.reading import FileCount, JoinReport, ReadReport, ScanReport, SparkSample, WeightSample, read_report
    from sql_ext.sampling import sample, tolerance
    from sql_ext.skipping import SkippingExplanation, explain

__all__ = [
    "ApproximateRow",
    "Call",
    "CancelRow",
    "CheckRow",
    "ClusteringInformationRow",
    "Concatenate",
    "ConsolidateLogRow",
    "DropIndexRow",
    "ExplainSkippingRow",
    "FileCount",
    "FileRun",
    "HealthRow",
    "IndexRow",
    "InputFile",
    "Inspect",
    "JoinReason",
    "JoinReport",
    "Maintenance",
    "Notification",
    "OptimizeRow",
    "Parameter",
    "PlanRow",
    "Procedure",
    "ProtectRow",
    "PurgeRow",
    "QuantilesRow",
    "ReadReport",
    "RecommendRow",
    "Relayout",
    "ReportRow",
    "ResumeRow",
    "SampleReason",
    "ScanReport",
    "SelectionSettings",
    "SkippedGroup",
    "SkippingExplanation",
    "SkippingReason",
    "SparkSample",
    "StatusRow",
    "Strategy",
    "Subscription",
    "SuspendRow",
    "Table",
    "TableFiles",
    "TableReport",
    "UnprotectRow",
    "UseError",
    "VacuumRow",
    "WeightSample",
    "attach",
    "call",
    "configure",
    "consumption",
    "explain",
    "fleet",
    "ingestion",
    "metastore_summary",
    "on_event",
    "optimizations",
    "read_report",
    "register_procedure",
    "register_strategy",
    "sample",
    "session",
    "spark_conf",
    "status",
    "table",
    "tolerance",
    "tolerance_by_group",
]

# The module of each name. It is imported with the first use of the name: ``sql_ext.readers`` works without Spark.
_MODULES = {
    "catalog.errors": ("UseError",),
    "catalog.pruning.join_reasons": ("JoinReason",),
    "catalog.pruning.read_planning": ("SampleReason",),
    "procedures.calls.cancel": ("CancelRow",),
    "procedures.calls.clustering_information": ("ClusteringInformationRow",),
    "procedures.calls.drop_index": ("DropIndexRow",),
    "procedures.calls.index": ("IndexRow",),
    "procedures.calls.plan": ("PlanRow",),
    "procedures.calls.protect": ("ProtectRow",),
    "procedures.calls.quantiles": ("QuantilesRow",),
    "procedures.calls.recommend": ("RecommendRow",),
    "procedures.calls.report": ("ReportRow",),
    "procedures.calls.resume": ("ResumeRow",),
    "procedures.calls.status": ("StatusRow",),
    "procedures.calls.suspend": ("SuspendRow",),
    "procedures.calls.unprotect": ("UnprotectRow",),
    "procedures.declare.declaration": ("Call", "Procedure"),
    "procedures.declare.signature": ("Parameter",),
    "procedures.groups.group": ("Concatenate", "FileRun", "InputFile", "Relayout", "SkippedGroup"),
    "procedures.groups.strategy": ("TableFiles",),
    "procedures.insight.approximation.answer_rows": ("ApproximateRow",),
    "procedures.insight.checking.problem": ("CheckRow",),
    "procedures.insight.health.diagnosis": ("HealthRow",),
    "procedures.insight.skipping.explanation": ("ExplainSkippingRow",),
    "procedures.insight.skipping.reasons": ("SkippingReason",),
    "procedures.lifecycle.log.consolidation": ("ConsolidateLogRow",),
    "procedures.lifecycle.purge.reclamation": ("PurgeRow",),
    "procedures.lifecycle.vacuum.vacuum_run": ("VacuumRow",),
    "procedures.loop.report": ("OptimizeRow",),
    "procedures.process.notifications": ("Notification", "Subscription"),
    "procedures.selection": ("SelectionSettings", "Strategy", "register_strategy"),
    "sql_ext.attachment": ("attach", "call", "register_procedure"),
    "sql_ext.configuration": ("configure", "spark_conf"),
    "sql_ext.dataframe_methods": ("tolerance_by_group",),
    "sql_ext.facade.all_tables": ("consumption", "fleet", "ingestion", "metastore_summary", "optimizations", "status"),
    "sql_ext.facade.inspection": ("Inspect",),
    "sql_ext.facade.maintenance": ("Maintenance",),
    "sql_ext.facade.table": ("Table", "table"),
    "sql_ext.facade.table_report": ("TableReport",),
    "sql_ext.local_session": ("session",),
    "sql_ext.notifications": ("on_event",),
    "sql_ext.reading": (
        "FileCount",
        "JoinReport",
        "ReadReport",
        "ScanReport",
        "SparkSample",
        "WeightSample",
        "read_report",
    ),
    "sql_ext.sampling": ("sample", "tolerance"),
    "sql_ext.skipping": ("SkippingExplanation", "explain"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Imports a name of the API.

    Raises:
        MissingPackageError: the name needs Spark, which is not installed.
    """
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(import_module(_MODULE_OF[name]), name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("pyspark", "py4j"):
            raise
        from catalog.errors import MissingPackageError

        raise MissingPackageError.of("pyspark", "spark") from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
