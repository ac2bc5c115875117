"""How SQL, Spark and Python reach USE: configure a session, attach to it, call and register procedures."""

from catalog.errors import UseError
from catalog.read_planning import SampleReason
from procedures.declaration import Call, Parameter, Procedure
from sql_ext.attachment import attach, call, register_procedure
from sql_ext.configuration import configure, spark_conf
from sql_ext.reading import ReadReport, ScanReport, SparkSample, read_report

__all__ = [
    "Call",
    "Parameter",
    "Procedure",
    "ReadReport",
    "SampleReason",
    "ScanReport",
    "SparkSample",
    "UseError",
    "attach",
    "call",
    "configure",
    "read_report",
    "register_procedure",
    "spark_conf",
]
