"""What our errors say, without Spark."""

import inspect
import re

import pytest

from catalog import errors
from catalog.errors import (
    AmbiguousColumnError,
    IndexConfigurationError,
    InvalidArgumentError,
    TableError,
    UnknownNameError,
    UseError,
)
from catalog.similar_names import nearest_names
from procedures.selection import strategies


def test_every_class_has_a_code_a_state_and_says_when_it_is_raised():
    classes = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, UseError)]
    assert len(classes) > 8
    for found in classes:
        assert re.fullmatch(r"USE_[A-Z_]+", found.code)
        assert re.fullmatch(r"[0-9A-Z]{5}", found.sql_state)
        assert found.__doc__
    codes = [c.code for c in classes]
    assert len(set(codes)) == len(codes)


def test_text_is_one_line_with_code_and_state():
    assert str(InvalidArgumentError.of("n", -1, "more than 0")) == (
        "[USE_INVALID_ARGUMENT] n = -1 is not accepted: more than 0. SQLSTATE: 22023"
    )
    assert "n = 'x'" in str(InvalidArgumentError.of("n", "x", "a number"))


@pytest.mark.parametrize(
    ("kind", "code", "state"),
    [
        ("column", "USE_UNKNOWN_COLUMN", "42703"),
        ("procedure", "USE_UNKNOWN_PROCEDURE", "42883"),
        ("strategy", "USE_UNKNOWN_STRATEGY", "42704"),
        ("option", "USE_UNKNOWN_OPTION", "42704"),
        ("some thing", "USE_UNKNOWN_SOME_THING", "42704"),
    ],
)
def test_unknown_names(kind, code, state):
    error = UnknownNameError.of(kind, "Leveled", ["UnindexedFiles", "LeveledCompaction"])
    assert (error.code, error.sql_state) == (code, state)
    assert error.message == f"There is no {kind} 'Leveled'. Did you mean LeveledCompaction?"


def test_no_near_name_and_no_name_at_all():
    assert UnknownNameError.of("option", "zzz", ["a"]).message == "There is no option 'zzz'. Known: a."
    assert UnknownNameError.of("run", "ab15151b2eaa", ["dabf111b580f"]).message.endswith("Known: dabf111b580f.")
    assert UnknownNameError.of("option", "zzz", []).message == "There is no option 'zzz'. Known: none."
    many = [f"a{number:02}" for number in range(14)]
    listed = "There is no {} 'zzz'. Known: a00, a01, a02, a03, a04, a05, a06, a07, a08, a09, a10, a11 and 2 more{}."
    assert UnknownNameError.of("column", "zzz", many).message == listed.format("column", "")
    # An unknown strategy is answered with all that are built in.
    built_in = [*strategies()]
    assert all(name in UnknownNameError.of("strategy", "zzz", built_in).message for name in built_in)
    helped = listed.format("procedure", "; CALL use.help() lists them")
    assert UnknownNameError.of("procedure", "zzz", many).message == helped


def test_similar_names():
    known = ["columnStats", "columnsToIndex", "cubeSize"]
    assert nearest_names("indexColumns", known) == ["columnStats", "columnsToIndex"]
    assert nearest_names("columnstat", known) == ["columnStats"]
    assert nearest_names("zzz", known) == []
    # What all names of a family begin with makes none of them similar.
    known = ["use.optimization.timestamp-end", "use.optimization.type", "use.optimization.revision-id"]
    assert nearest_names("use.optimization.autoOptimize.enabled", known) == []
    assert nearest_names("use.optimization.revisionId", known) == ["use.optimization.revision-id"]
    assert nearest_names("use.optimisation.tpye", known) == ["use.optimization.type"]
    known = ["columnStats", "columnsToIndex", "cubeSize"]
    hint = UnknownNameError.of("option", "indexColumns", known).message
    assert hint == "There is no option 'indexColumns'. Did you mean columnStats or columnsToIndex?"


def test_a_missing_table_has_a_hint():
    assert TableError.missing("t", "").message == "table = 't' was not found: give a table name or a path."
    near = TableError.missing("sale", "no such folder", "db.sales").message
    assert near == "table = 'sale' was not found (no such folder). Did you mean db.sales?"


@pytest.mark.parametrize(
    ("error", "code", "state"),
    [
        (TableError.missing("t", ""), "USE_TABLE_NOT_FOUND", "42P01"),
        (TableError.invalid_name("a..b", "bad"), "USE_INVALID_TABLE_NAME", "42602"),
        (TableError.view("v"), "USE_NOT_A_TABLE", "42809"),
        (TableError.not_delta("p", "parquet"), "USE_NOT_A_DELTA_TABLE", "42809"),
        (IndexConfigurationError.no_columns("t", "UnindexedFiles"), "USE_NO_INDEX_COLUMNS", "55000"),
        (AmbiguousColumnError.of("s.a", ["`s.a`", "`s`.`a`"]), "USE_AMBIGUOUS_COLUMN", "42702"),
        (IndexConfigurationError.unindexable("c", "binary", "numbers"), "USE_UNINDEXABLE_TYPE", "42K09"),
    ],
)
def test_tables(error, code, state):
    assert (error.code, error.sql_state) == (code, state)
    assert isinstance(error, UseError)


def test_a_relative_path_is_named_as_such():
    assert "relative paths are not accepted. Write" in str(
        TableError.invalid_name("spark-warehouse/t", "must be quoted")
    )
    assert "must be quoted. Write" in str(TableError.invalid_name("spark-warehouse", "must be quoted"))


def test_a_message_can_be_sent_to_any_client_and_controls_no_terminal():
    error = InvalidArgumentError.of("where", "a\ud800b\x9b31m\x1b[2Jc\x85d", "a predicate")
    assert error.message == "where = 'a b 31m [2Jc d' is not accepted: a predicate."
    str(error).encode()
