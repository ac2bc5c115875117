"""How SQL, Spark and Python reach USE: configure a session, attach to it, call and register procedures."""

from catalog.errors import UseError
from catalog.read_planning import SampleReason
from procedures.declaration import Call, Parameter, Procedure
from procedures.plan import FileGroup, InputFile, Selection, SkippedGroup
from procedures.selection import SelectionSettings, Strategy, register_strategy
from sql_ext.attachment import attach, call, register_procedure
from sql_ext.configuration import configure, spark_conf
from sql_ext.reading import ReadReport, ScanReport, SparkSample, read_report

__all__ = [
    "Call",
    "FileGroup",
    "InputFile",
    "Parameter",
    "Procedure",
    "ReadReport",
    "SampleReason",
    "ScanReport",
    "Selection",
    "SelectionSettings",
    "SkippedGroup",
    "SparkSample",
    "Strategy",
    "UseError",
    "attach",
    "call",
    "configure",
    "read_report",
    "register_procedure",
    "register_strategy",
    "spark_conf",
]
