"""The Python end of the bridge: answers what the shim asks."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any

from py4j.java_collections import JavaList, JavaMap
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from catalog.errors import IndexUnreadableError, UseError, first_line
from catalog.jvm.java_errors import as_one_line
from catalog.jvm.session import data_frame
from catalog.pruning.read_planning import SampleReason, plan_read, plan_sample, refused_sample
from catalog.system_tables import SYSTEM_TABLES
from catalog.table.managed_table import ManagedTable
from catalog.virtual_tables import VIRTUAL_TABLES
from otree.errors import IndexFormatError
from procedures.layout.current_trees import CURRENT_TREES
from procedures.registry import procedure, procedures
from procedures.service.manual import trigger
from procedures.service.service import CatalogChange, notify
from procedures.writing.indexed_write import write_indexed
from procedures.writing.metadata_changes import TableMetadata, checked_change
from procedures.writing.write_options import check_options
from procedures.writing.write_settings import index_settings

logger = logging.getLogger(__name__)

_SAMPLING = "spark.qbeast.use.sampling.enabled"


def declarations() -> str:
    """Procedures, virtual tables and system tables as the shim takes them, as JSON."""
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
        }
    )


class BridgeHandler:
    """Implements the shim's ``PythonHandler`` over Py4J; returns errors, so that SQL clients see one clean line."""

    class Java:
        """Read by Py4J."""

        implements = ("io.usespark.PythonHandler",)

    def __init__(self) -> None:
        """Lists the operations; the session comes with every question."""
        self._operations: dict[str, Callable[[SparkSession, Mapping[str, Any]], Any]] = {
            "call": self._call,
            "virtual_table": self._virtual_table,
            "system_table": self._system_table,
            "check_table": self._check_table,
            "plan_sample": self._plan_sample,
            "plan_read": self._plan_read,
            "check_metadata": self._check_metadata,
            "check_options": self._check_options,
            "index_settings": self._index_settings,
            "write_files": self._write_files,
            "written": self._written,
            "catalog_changed": self._catalog_changed,
            "manual_trigger": self._manual_trigger,
            "unknown_procedure": lambda _, given: procedure(given["name"]),
        }

    def handle(self, operation: str, java_session: Any, arguments: Any) -> Any:
        """Answers one question; see ``PythonHandler.handle``."""
        try:
            spark = SparkSession(_context(), java_session)
            return self._operations[operation](spark, {name: arguments[name] for name in _keys(arguments)})
        except UseError as error:
            return self._refusal(error.code, error.sql_state, error.message)
        except IndexFormatError as error:
            return self._refusal(IndexUnreadableError.code, IndexUnreadableError.sql_state, str(error))
        except Exception as error:  # the JVM must get an answer, whatever happened
            origin = error.java_exception if isinstance(error, Py4JJavaError) else getattr(error, "_origin", None)
            if origin is not None:
                return origin
            logger.exception("%s failed", operation)
            return self._refusal("USE_INTERNAL", "XX000", f"{type(error).__name__}: {first_line(error)}")

    def _refusal(self, code: str, sql_state: str, message: str) -> Any:
        answer = _context()._jvm.java.util.HashMap()  # type: ignore[union-attr]
        answer.put("condition", code)
        answer.put("sqlState", sql_state)
        answer.put("message", message)
        return answer

    def _call(self, spark: SparkSession, given: Mapping[str, Any]) -> Any:
        arguments = _to_python(given["arguments"])
        return procedure(given["name"]).call(spark, arguments)._jdf

    def _virtual_table(self, spark: SparkSession, given: Mapping[str, Any]) -> Any:
        with as_one_line(spark):
            return VIRTUAL_TABLES[given["kind"]].rows(ManagedTable.find(spark, given["table"]))._jdf

    def _check_table(self, spark: SparkSession, given: Mapping[str, Any]) -> None:
        # A damaged log may be found out only when a version is read.
        ManagedTable.find(spark, given["table"]).state()

    def _system_table(self, spark: SparkSession, given: Mapping[str, Any]) -> Any:
        table = SYSTEM_TABLES[given["kind"]]
        with as_one_line(spark):
            return table.read(spark, [name for name in given["columns"].split(",") if name])._jdf

    def _plan_sample(self, spark: SparkSession, given: Mapping[str, Any]) -> str:
        if not _enabled(spark, _SAMPLING):
            return refused_sample(SampleReason.SWITCHED_OFF, f"{_SAMPLING} is false")
        return plan_sample(given["configuration"], given["lower"], given["upper"])

    def _plan_read(self, spark: SparkSession, given: Mapping[str, Any]) -> str | None:
        if not _enabled(spark, "spark.qbeast.use.pruning.enabled"):
            return None
        return plan_read(given["configuration"], given["conditions"])

    def _check_metadata(self, _: SparkSession, given: Mapping[str, Any]) -> str:
        return json.dumps(checked_change(_metadata(given["before"]), _metadata(given["after"])))

    def _check_options(self, _: SparkSession, given: Mapping[str, Any]) -> None:
        check_options(json.loads(given["options"]), json.loads(given["others"]), json.loads(given["of_delta"]))

    def _index_settings(self, _: SparkSession, given: Mapping[str, Any]) -> str:
        settings = index_settings(
            json.loads(given["options"]),
            json.loads(given["configuration"]),
            StructType.fromJson(json.loads(given["schema"])),
            tuple(json.loads(given["partition_columns"])),
            given["replaces"],
            given["writes"],
        )
        return json.dumps(settings)

    def _write_files(self, spark: SparkSession, given: Mapping[str, Any]) -> None:
        write_indexed(spark, given["write"], data_frame(given["rows"], spark))

    def _written(self, _: SparkSession, given: Mapping[str, Any]) -> None:
        CURRENT_TREES.committed(given["write"], given["version"])

    def _catalog_changed(self, _: SparkSession, given: Mapping[str, Any]) -> None:
        notify(CatalogChange(given["kind"], given["name"], given["location"], given["before"]))

    def _manual_trigger(self, spark: SparkSession, given: Mapping[str, Any]) -> None:
        trigger(spark, given["table"], json.loads(given["properties"]))


def _metadata(text: str) -> TableMetadata:
    facts = json.loads(text)
    schema = StructType.fromJson(json.loads(facts["schema"])) if facts["schema"] else StructType()
    return TableMetadata(facts["configuration"], schema, tuple(facts["partition_columns"]))


def _enabled(spark: SparkSession, key: str) -> bool:
    return (spark.conf.get(key, "true") or "true").strip().lower() != "false"


def _context() -> SparkContext:
    """The running context: a notebook may have stopped the one of the attachment and started another."""
    context = SparkContext._active_spark_context
    if context is None:
        raise UseError("No SparkContext is running.")
    return context


def _to_python(value: Any) -> Any:
    """Py4J collections as plain ones."""
    # Only the types tell: a Java object claims to have any attribute that it is asked for.
    if isinstance(value, JavaMap):
        return {str(k): _to_python(value[k]) for k in _keys(value)}
    if isinstance(value, JavaList):
        return [_to_python(value[i]) for i in range(len(value))]
    return value


def _keys(values: JavaMap) -> list[Any]:
    """The keys of a Java map. Its own iterator ends with an exception of the JVM, which costs 40 ms to convert."""
    keys = values.keySet().toArray()
    return [keys[i] for i in range(len(keys))]
