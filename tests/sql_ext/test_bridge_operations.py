"""The questions of the shim as Python reads them, and against their declaration in the shim. No Spark."""

import json
import re
from pathlib import Path

import pytest
from pyspark.sql.types import StructType

from procedures.service.metadata_changes import TableMetadata
from sql_ext import bridge
from sql_ext.bridge_arguments import MalformedQuestionError
from sql_ext.bridge_operations import OPERATIONS

MAIN = Path(__file__).resolve().parent.parent.parent / "jars-build" / "src" / "main"
DECLARED = re.compile(r"Operation (?P<constant>[A-Z_]+)\s*=\s*new Operation\((?P<texts>[^)]*)\)", re.DOTALL)
ASKED = re.compile(r"Python\s*\.\s*(?:text|data|rows)\(\s*Operation\.([A-Z_]+)")

SCHEMA = StructType().add("a", "integer").json()
METADATA = {"configuration": {"k": "v"}, "schema": SCHEMA, "partition_columns": ["a"]}
VALUES = {
    "call": {"name": "optimize", "arguments": {"table": "t"}},
    "unknown_procedure": {"name": "x"},
    "virtual_table": {"table": "t", "kind": "cubes"},
    "system_table": {"kind": "metastore_summary", "columns": "a,b"},
    "check_table": {"table": "t"},
    "check_virtual_table": {"table": "t", "name": "cubez"},
    "check_version": {"table": "default.t", "version": 3},
    "plan_sample": {"configuration": "{}", "lower": 0.0, "upper": 1, "settings": "{}"},
    "plan_read": {"configuration": "{}", "conditions": "[]", "settings": "{}"},
    "key_limits": {"settings": '{"spark.qbeast.use.joins.keys": "7"}'},
    "check_setting": {"name": "spark.qbeast.use.joins.keys", "value": "7"},
    "plan_key_job": {"scan_bytes": 1 << 40, "side_bytes": 5, "one_key_share": 1, "settings": "{}"},
    "check_metadata": {
        "before": json.dumps({**METADATA, "schema": None}),
        "after": json.dumps(METADATA),
        "inherited": "{}",
    },
    "check_database": {"properties": "{}"},
    "check_other_format": {"table": "t", "provider": "parquet", "properties": "{}"},
    "check_options": {"options": "{}", "others": '["x"]', "of_delta": "[]"},
    "index_settings": {
        "options": '{"cubeSize": "5"}', "configuration": "{}", "schema": SCHEMA, "partition_columns": '["a"]',
        "replaces": False, "writes": True,
    },
    "write_files": {"write": object()},
    "write_kept_rows": {"write": object()},
    "write_committed": {"write": "id", "version": 3},
    "catalog_changed": {"kind": "dropped", "name": "t", "before": "", "location": ""},
    "manual_trigger": {"table": "t", "properties": "{}"},
    "scans_recorded": {"location": "file:/t", "lines": "{}"},
}  # fmt: skip


def _declared():
    """Operations of the shim: constant, and its name and keys."""
    source = (MAIN / "java" / "io" / "usespark" / "Operation.java").read_text(encoding="utf-8")
    return {m["constant"]: re.findall(r'"([^"]*)"', m["texts"]) for m in DECLARED.finditer(source)}


def test_both_sides_declare_the_same_operations_and_keys():
    shim = {name: set(keys) for name, *keys in _declared().values()}
    assert shim == {name: set(kind.argument_names()) for name, kind in OPERATIONS.items()}


def test_the_shim_asks_every_operation_and_no_other():
    sources = [path for kind in ("*.scala", "*.java") for path in MAIN.rglob(kind)]
    asked = {name for path in sources for name in ASKED.findall(path.read_text(encoding="utf-8"))}
    assert asked == set(_declared())


def test_every_operation_has_an_answer():
    assert set(bridge._HANDLERS) == set(OPERATIONS)


@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_arguments_are_read(operation):
    arguments = OPERATIONS[operation].parse(VALUES[operation])
    assert type(arguments) is OPERATIONS[operation]


def test_texts_become_values():
    settings = OPERATIONS["index_settings"].parse(VALUES["index_settings"])
    assert (settings.options, settings.schema, settings.partition_columns) == (
        {"cubeSize": "5"}, StructType().add("a", "integer"), ("a",),
    )  # fmt: skip
    change = OPERATIONS["check_metadata"].parse(VALUES["check_metadata"])
    assert change.after == TableMetadata({"k": "v"}, StructType().add("a", "integer"), ("a",))
    assert change.before.schema == StructType()
    assert OPERATIONS["system_table"].parse({"kind": "x", "columns": ""}).columns == ()
    assert OPERATIONS["system_table"].parse({"kind": "x", "columns": "a,b"}).columns == ("a", "b")


@pytest.mark.parametrize(
    ("operation", "changed", "text"),
    [
        ("check_table", {}, "asks check_table with no arguments; accepted: table"),
        ("check_table", {"table": "t", "more": 1}, "asks check_table with more, table; accepted: table"),
        ("check_table", {"table": 1}, "table = 1; accepted: a text"),
        ("write_committed", {"write": "id", "version": True}, "version = True; accepted: a whole number"),
        ("plan_sample", VALUES["plan_sample"] | {"lower": "0"}, "lower = '0'; accepted: a number"),
        (
            "check_options",
            {"options": "[]", "others": "[]", "of_delta": "[]"},
            "options = '\\[\\]'; accepted: a JSON obj",
        ),
        ("check_options", {"options": "{", "others": "[]", "of_delta": "[]"}, "accepted: a JSON object"),
        ("check_options", {"options": "{}", "others": "[1]", "of_delta": "[]"}, "accepted: a JSON array of texts"),
        (
            "check_metadata",
            {"before": "{}", "after": "{}", "inherited": "{}"},
            "before = .*; accepted: a JSON object with configuration",
        ),
        ("index_settings", {**VALUES["index_settings"], "schema": "{}"}, "schema = .*; accepted: the JSON of a schema"),
        ("index_settings", {**VALUES["index_settings"], "writes": 1}, "writes = 1; accepted: a boolean"),
        ("write_files", {"write": None}, "write = None; accepted: an object of the shim"),
        ("call", {"name": "x", "arguments": "y"}, "arguments = 'y'; accepted: a map"),
    ],
)
def test_malformed_questions_are_refused(operation, changed, text):
    with pytest.raises(MalformedQuestionError, match=text):
        OPERATIONS[operation].parse(changed)


def test_a_malformed_question_is_answered_by_an_error(monkeypatch):
    monkeypatch.setattr(bridge.logger, "exception", lambda *_: None)
    refusal = bridge.answer("check_table", None, {})
    assert (refusal.condition, refusal.sql_state) == ("USE_INTERNAL", "XX000")
    assert "accepted: table" in refusal.message
    assert "KeyError: 'other'" in bridge.answer("other", None, {}).message
