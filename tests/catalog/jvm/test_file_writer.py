"""What the typed classes of ``catalog/jvm`` make of the texts of the shim. No Spark."""

import json
from types import SimpleNamespace

from pyspark.sql.types import StructType

from catalog.jvm.file_writer import CountedBlock, DataFile, FileWriter
from catalog.jvm.indexed_rows import IndexedRows, WriteFacts
from catalog.jvm.table_state import TableState


class Rows:
    _jdf = "rows"


class Java:
    """An object of the shim: each method returns what it is made with, and notes its arguments."""

    def __init__(self, **answers):
        self._answers, self.calls = answers, []

    def __getattr__(self, name):
        return lambda *given: (self.calls.append((name, given)), self._answers[name])[1]


def test_files_written():
    written = [
        {"path": "a", "size": 10, "rows": 3, "stats": "{}", "blocks": [[0, 2, -5, 5], [1, 1, 7, 7]]},
        {"path": "b", "size": 20, "rows": -1, "stats": None},
    ]
    java = Java(write=json.dumps(written))
    assert FileWriter(None, java).write(Rows()) == [
        DataFile("a", 10, 3, "{}", (CountedBlock(0, 2, -5, 5), CountedBlock(1, 1, 7, 7))),
        DataFile("b", 20),
    ]
    assert java.calls == [("write", ("rows", None, None))]


def test_no_change_of_properties_asks_nothing():
    java = Java()
    FileWriter(None, java).configure({})
    assert java.calls == []


def test_facts_of_a_write():
    facts = {
        "location": "/t", "mode": "append", "plan_bytes": 1, "repeatable": True, "change_type": None, "settings": {},
    }  # fmt: skip
    assert IndexedRows(None, Java(facts=json.dumps(facts))).facts() == WriteFacts(**facts)


def test_facts_of_a_table():
    schema = StructType().add("a", "integer")
    facts = {
        "version": 4, "table_id": "i", "configuration": {"k": "v"}, "schema": schema.json(), "partition_columns": ["a"],
        "retention_ms": 1_800_000, "committed_at": 5, "inherited": {"database": {"use.a": "1"}, "session": {}},
    }  # fmt: skip
    spark = SimpleNamespace(_jsparkSession="session")
    read = TableState(spark, Java(facts=json.dumps(facts))).facts()
    assert (read.version, read.table_id, read.schema, read.partition_columns) == (4, "i", schema, ("a",))
    assert read.retention_hours == 0.5
    assert (read.database_properties, read.session_properties) == ({"use.a": "1"}, {})
    assert TableState(spark, Java(facts=json.dumps({**facts, "schema": None}))).facts().schema is None
