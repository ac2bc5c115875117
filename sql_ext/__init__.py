"""The Python API of USE for Spark: configure and attach a session, inspect and maintain tables."""

from sql_ext.installation import check_packages  # isort: split

check_packages()

from catalog.errors import UseError
from catalog.pruning.read_planning import SampleReason
from procedures.declaration import Call, Parameter, Procedure
from procedures.optimizer.plan import FileGroup, FileRun, InputFile, Selection, SkippedGroup
from procedures.result_rows import (
    CancelRow,
    CheckRow,
    ClusteringInformationRow,
    ConsolidateLogRow,
    DropIndexRow,
    ExplainSkippingRow,
    HealthRow,
    IndexRow,
    OptimizeRow,
    PlanRow,
    ProtectRow,
    PurgeRow,
    QuantilesRow,
    RecommendRow,
    ReportRow,
    ResumeRow,
    StatusRow,
    SuspendRow,
    UnprotectRow,
    VacuumRow,
)
from procedures.selection import SelectionSettings, Selector, Strategy, register_strategy
from procedures.service.notifications import Notification, Subscription
from procedures.skipping.reasons import SkippingReason
from sql_ext.attachment import attach, call, register_procedure
from sql_ext.configuration import configure, spark_conf
from sql_ext.facade.all_tables import consumption, ingestion, metastore_summary, optimizations, status
from sql_ext.facade.inspection import Inspect
from sql_ext.facade.maintenance import Maintenance
from sql_ext.facade.table import Table, table
from sql_ext.facade.table_report import TableReport
from sql_ext.local_session import session
from sql_ext.notifications import on_event
from sql_ext.reading import FileCount, ReadReport, ScanReport, SparkSample, WeightSample, read_report
from sql_ext.skipping import SkippingExplanation, explain

__all__ = [
    "Call",
    "CancelRow",
    "CheckRow",
    "ClusteringInformationRow",
    "ConsolidateLogRow",
    "DropIndexRow",
    "ExplainSkippingRow",
    "FileCount",
    "FileGroup",
    "FileRun",
    "HealthRow",
    "IndexRow",
    "InputFile",
    "Inspect",
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
    "ReportRow",
    "ResumeRow",
    "SampleReason",
    "ScanReport",
    "Selection",
    "SelectionSettings",
    "Selector",
    "SkippedGroup",
    "SkippingExplanation",
    "SkippingReason",
    "SparkSample",
    "StatusRow",
    "Strategy",
    "Subscription",
    "SuspendRow",
    "Table",
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
    "ingestion",
    "metastore_summary",
    "on_event",
    "optimizations",
    "read_report",
    "register_procedure",
    "register_strategy",
    "session",
    "spark_conf",
    "status",
    "table",
]
