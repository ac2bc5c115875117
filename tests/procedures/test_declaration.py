"""Declaring procedures, and checking calls against the declaration, without Spark."""

import dataclasses

import pytest

from catalog.errors import InvalidArgumentError, UnknownNameError
from procedures import registry
from procedures.declaration import PARAMETER_TYPES, Parameter, Procedure
from procedures.help import help_procedure


def _procedure(*parameters, name="mine", run=lambda call: call):
    return Procedure(name, "Does it.", parameters, "n int", run)


TABLE = Parameter("table", "STRING", "The table.")


@pytest.mark.parametrize("name", ["", "Mine", "my-one", "1st", "a b", "a.b", "ä", "_a"])
def test_names_are_snake_case(name):
    with pytest.raises(InvalidArgumentError, match="lower-case"):
        _procedure(name=name)
    with pytest.raises(InvalidArgumentError, match="lower-case"):
        _procedure(Parameter(name, "INT", "A number.", 1))


@pytest.mark.parametrize("kind", ["FLOAT", "int", "ARRAY<INT>", ""])
def test_types_are_the_listed_ones(kind):
    with pytest.raises(InvalidArgumentError, match="one of STRING"):
        _procedure(Parameter("n", kind, "A number.", None))


def test_each_name_once_and_required_first():
    with pytest.raises(InvalidArgumentError, match="each name once"):
        _procedure(TABLE, TABLE)
    with pytest.raises(InvalidArgumentError, match="required parameters first"):
        _procedure(Parameter("n", "INT", "A number.", 1), TABLE)


@pytest.mark.parametrize(
    ("kind", "default", "signature", "sql"),
    [
        ("STRING", None, "p STRING = NULL", "NULL"),
        ("STRING", "it's", "p STRING = 'it''s'", "'it''s'"),
        ("INT", 1, "p INT = 1", "CAST(1 AS INT)"),
        ("BIGINT", -(2**63), f"p BIGINT = {-(2**63)}", f"CAST({-(2**63)} AS BIGINT)"),
        ("DOUBLE", 1.5, "p DOUBLE = 1.5", "CAST(1.5 AS DOUBLE)"),
        ("BOOLEAN", False, "p BOOLEAN = false", "false"),
        ("MAP<STRING,STRING>", {}, "p MAP<STRING,STRING> = map()", "CAST(map() AS MAP<STRING,STRING>)"),
    ],
)
def test_defaults_as_sql(kind, default, signature, sql):
    parameter = Parameter("p", kind, "It.", default)
    assert not parameter.required
    assert parameter.signature == signature
    assert parameter.default_sql == sql


def test_a_required_parameter_has_no_default():
    assert TABLE.required
    assert TABLE.default_sql is None
    assert TABLE.signature == "table STRING"


VALUES = {
    "STRING": "a",
    "INT": 1,
    "BIGINT": 2**40,
    "DOUBLE": 0.5,
    "BOOLEAN": True,
    "ARRAY<STRING>": ["a"],
    "MAP<STRING,STRING>": {"a": "b"},
}


@pytest.mark.parametrize("kind", PARAMETER_TYPES)
def test_values_must_be_of_the_type(kind):
    parameter = Parameter("p", kind, "It.", None)
    assert parameter.check(VALUES[kind]) == VALUES[kind]
    assert parameter.check(None) is None
    for other, value in VALUES.items():
        wider = {"DOUBLE": {"INT", "BIGINT"}, "INT": {"BIGINT"}, "BIGINT": {"INT"}}.get(kind, set())
        if other != kind and other not in wider:
            with pytest.raises(InvalidArgumentError, match=f"a {kind.split('<')[0]}"):
                parameter.check(value)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("INT", 2**31),
        ("INT", -(2**31) - 1),
        ("BIGINT", 2**63),
        ("ARRAY<STRING>", [1]),
        ("MAP<STRING,STRING>", {"a": 1}),
        ("MAP<STRING,STRING>", {1: "a"}),
    ],
)
def test_what_sql_would_refuse_python_refuses_too(kind, value):
    with pytest.raises(InvalidArgumentError, match="p = "):
        Parameter("p", kind, "It.", None).check(value)


def test_null_stands_for_the_default_and_is_refused_where_there_is_none():
    assert Parameter("p", "INT", "It.", 7).check(None) == 7
    with pytest.raises(InvalidArgumentError, match=r"table = None .* required"):
        TABLE.check(None)


def test_a_call_gets_every_parameter():
    mine = _procedure(TABLE, Parameter("n", "INT", "A number.", 3))
    call = mine.call("the session", {"table": "t"})
    assert (call.spark, call["table"], call["n"]) == ("the session", "t", 3)
    assert dict(mine.call("s", {"table": "t", "n": 4}).arguments) == {"table": "t", "n": 4}


def test_a_call_with_an_unknown_argument_names_the_nearest():
    with pytest.raises(UnknownNameError, match=r"'tabel'. Did you mean table\?") as refused:
        _procedure(TABLE).call(None, {"tabel": "t"})
    assert refused.value.code == "USE_UNKNOWN_PARAMETER"


def test_a_call_without_a_required_argument_is_refused():
    with pytest.raises(InvalidArgumentError, match="table = None"):
        _procedure(TABLE).call(None, {})


def test_signature():
    assert _procedure(TABLE, Parameter("n", "INT", "A number.", 3)).signature == "use.mine(table STRING, n INT = 3)"


def test_declarations_are_values():
    with pytest.raises(dataclasses.FrozenInstanceError):
        TABLE.name = "other"


def test_the_registry_finds_any_case_and_names_the_nearest():
    assert registry.procedure("OPTIMIZE").name == "optimize"
    with pytest.raises(UnknownNameError, match=r"Did you mean optimize\?") as refused:
        registry.procedure("optimise")
    assert (refused.value.code, refused.value.sql_state) == ("USE_UNKNOWN_PROCEDURE", "42883")


def test_registering_again_replaces():
    try:
        registry.register(_procedure(name="unit_test_only"))
        second = _procedure(TABLE, name="unit_test_only")
        registry.register(second)
        assert registry.procedure("unit_test_only") is second
    finally:
        registry._PROCEDURES.pop("unit_test_only")


class _Session:
    def createDataFrame(self, rows, schema):  # noqa: N802 - as Spark spells it
        return rows


def test_help_lists_every_declared_parameter():
    found = registry.procedures()
    listed = help_procedure(lambda: found).call(_Session(), {})
    assert [r[0] for r in listed] == sorted(found)
    for name, procedure in found.items():
        rows = help_procedure(lambda: found).call(_Session(), {"procedure": f"USE.{name}"})
        assert [r[0] for r in rows] == [name, *(p.name for p in procedure.parameters), "result"]
        assert all(r[3] for r in rows)
    with pytest.raises(UnknownNameError, match=r"Did you mean vacuum\?"):
        help_procedure(lambda: found).call(_Session(), {"procedure": "vacum"})
