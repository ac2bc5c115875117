"""Declaring procedures, and checking calls against the declaration, without Spark."""

import dataclasses
from decimal import Decimal

import pytest

from catalog.errors import InvalidArgumentError, UnknownNameError
from procedures.calls import registry
from procedures.calls.help import help_procedure
from procedures.declare.declaration import Procedure
from procedures.declare.signature import PARAMETER_TYPES, Parameter, details_parameter
from procedures.loop.optimize_settings import OptimizeSettings
from procedures.process.application import application


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
    "ARRAY<BIGINT>": [2**40],
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
            with pytest.raises(InvalidArgumentError, match=f"an? {kind.split('<')[0]}"):
                parameter.check(value)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("INT", 2**31),
        ("INT", -(2**31) - 1),
        ("BIGINT", 2**63),
        *((kind, value) for kind in ("INT", "BIGINT") for value in (1.0, 1.5, Decimal(2), Decimal("1.5"), "1", b"1")),
        *((kind, float(value)) for kind in ("INT", "BIGINT") for value in ("nan", "inf", "-inf")),
        ("STRING", 1),
        ("STRING", Decimal("1.5")),
        ("DOUBLE", "0.5"),
        ("DOUBLE", True),
        ("BOOLEAN", 1),
        ("BOOLEAN", "true"),
        ("ARRAY<STRING>", [1]),
        ("ARRAY<BIGINT>", ["1"]),
        ("ARRAY<BIGINT>", [True]),
        ("ARRAY<BIGINT>", [2**63]),
        ("ARRAY<BIGINT>", 1),
        ("MAP<STRING,STRING>", {"a": 1}),
        ("MAP<STRING,STRING>", {1: "a"}),
    ],
)
def test_what_sql_would_refuse_python_refuses_too(kind, value):
    with pytest.raises(InvalidArgumentError, match="p = "):
        Parameter("p", kind, "It.", None).check(value)


@pytest.mark.parametrize("value", [2, 2.0, Decimal(2), Decimal("2.0")])
def test_any_number_is_a_double(value):
    """SQL has no literals of this type: 2.5 is a decimal there, and 2 an integer."""
    found = Parameter("p", "DOUBLE", "It.", None).check(value)
    assert (found, type(found)) == (2.0, float)


def test_null_stands_for_the_default_and_is_refused_where_there_is_none():
    assert Parameter("p", "INT", "It.", 7).check(None) == 7
    with pytest.raises(InvalidArgumentError, match=r"table = NULL is not accepted: a STRING is required"):
        TABLE.check(None)


@pytest.mark.parametrize("declared", list(registry.procedures().values()), ids=lambda p: p.name)
def test_null_in_every_parameter_of_every_procedure(declared):
    """Required ones refuse it by name; for all others it stands for the default."""
    for parameter in declared.parameters:
        if parameter.required:
            with pytest.raises(InvalidArgumentError, match=f"^.*{parameter.name} = NULL is not accepted"):
                parameter.check(None)
        else:
            assert parameter.check(None) == parameter.default


@pytest.mark.parametrize(
    ("procedure", "parameter"),
    [
        (procedure, parameter)
        for procedure in registry.procedures().values()
        for parameter in procedure.parameters
        if parameter.type in ("INT", "BIGINT")
    ],
    ids=lambda v: v.name,
)
def test_every_whole_number_of_every_procedure(procedure, parameter):
    """Each refuses what is no whole number of its type by its name, and what is below its range."""
    given = {p.name: "a" for p in procedure.parameters if p.required}

    def check(arguments):
        checked = procedure.checked(arguments)
        if procedure.name == "optimize":  # its strategies are known where it runs
            OptimizeSettings.of(checked)

    too_large = 2**31 if parameter.type == "INT" else 2**63
    for value in (1.5, Decimal("1.5"), "1", True, float("nan"), too_large, -too_large - 1):
        with pytest.raises(InvalidArgumentError, match=f"{parameter.name} = .* {parameter.type} is expected"):
            check({**given, parameter.name: value})
    least = 0 if parameter.name in ("revision_id", "version") else 1
    for value in (-1, least - 1):
        with pytest.raises(InvalidArgumentError, match=f"{parameter.name} = {value} is not accepted"):
            check({**given, parameter.name: value})


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
    with pytest.raises(InvalidArgumentError, match="table is missing: a STRING is required"):
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
        application().own_procedures.pop("unit_test_only")


def test_short_results_need_the_parameter_that_shows_all_columns():
    class Rows:
        columns = ("a", "b")

        def select(self, *columns):
            return columns

    details = details_parameter("b", default=False)
    short = Procedure("p", "d", (details,), "a int, b map<string,string>", lambda _: Rows(), short=("a",))
    assert (short.short_result, short.call(None, {})) == ("a int", ("a",))
    assert short.call(None, {"details": True}).columns == ("a", "b")
    assert Procedure("p", "d", (), "a int, b int", lambda _: Rows()).call(None, {}).columns == ("a", "b")
    for parameters, columns in [((), ("a",)), ((details,), ("a", "c")), ((details,), ("a", "b"))]:
        with pytest.raises(InvalidArgumentError, match="short"):
            Procedure("p", "d", parameters, "a int, b int", lambda _: Rows(), short=columns)


def test_help_lists_every_declared_parameter(monkeypatch):
    monkeypatch.setattr(
        "procedures.declare.operation.data_frame_of",
        lambda spark, kind, rows: [dataclasses.astuple(row) for row in rows],
    )
    found = registry.procedures()
    listed = help_procedure(lambda: found).call(None, {})
    assert [r[0] for r in listed] == sorted(found)
    for name, procedure in found.items():
        rows = help_procedure(lambda: found).call(None, {"procedure": f"USE.{name}"})
        results = ["result", "result without details"] if procedure.short else ["result"]
        assert [r[0] for r in rows] == [name, *(p.name for p in procedure.parameters), *results]
        assert all(r[3] for r in rows)
    with pytest.raises(UnknownNameError, match=r"Did you mean vacuum\?"):
        help_procedure(lambda: found).call(None, {"procedure": "vacum"})
