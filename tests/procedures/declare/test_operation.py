"""Operations as functions: what SQL gets from a signature and a docstring."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

import pytest
from pyspark.sql import DataFrame

from catalog.errors import InvalidArgumentError
from procedures.declare.declaration import Call
from procedures.declare.operation import Constraint, Int, TableName, operation
from procedures.declare.signature import DETAILS, Parameter, details_parameter


@dataclass(frozen=True)
class Row:
    table: str
    files: int


def count_files(
    call: Call,
    table: TableName,
    at_least: Int = 3,
    *,
    share: float = 0.5,
    names: Annotated[list[str] | tuple[str, ...] | None, Constraint(not_blank="names")] = None,
    numbers: list[int] | tuple[int, ...] | None = None,
    options: dict[str, str] | None = None,
    age: Annotated[str | int | timedelta | None, Constraint(accepted="an age")] = None,
    size: int | None = None,
    dry_run: bool = False,
) -> list[Row]:
    """Counts files.
    It reads metadata only.

    This paragraph is for Python.

    Args:
        at_least: Only this many: files
            or more.
        share: A share.
        names: Names.
        numbers: Numbers.
        options: Options.
        age: An age.
        size: A size.
        dry_run: Changes nothing.

    Returns:
        A row per table.
    """
    return [Row(table, at_least), Row(names, share)]


def test_the_signature_and_the_docstring_declare_a_procedure():
    declared = operation(count_files)
    assert (declared.name, declared.doc) == ("count_files", "Counts files. It reads metadata only.")
    assert declared.result == "table string, files bigint"
    assert not declared.returns_one
    assert declared.parameters == (
        Parameter("table", "STRING", "Table name, delta.`path` or path."),
        Parameter("at_least", "INT", "Only this many: files or more.", 3),
        Parameter("share", "DOUBLE", "A share.", 0.5),
        Parameter("names", "ARRAY<STRING>", "Names.", None, not_blank="names"),
        Parameter("numbers", "ARRAY<BIGINT>", "Numbers.", None),
        Parameter("options", "MAP<STRING,STRING>", "Options.", {}),
        Parameter("age", "STRING", "An age.", None, (int, timedelta), "an age"),
        Parameter("size", "BIGINT", "A size.", None),
        Parameter("dry_run", "BOOLEAN", "Changes nothing.", False),
    )


def test_the_function_gets_checked_arguments(monkeypatch):
    monkeypatch.setattr("procedures.declare.operation.data_frame_of", lambda spark, kind, rows: (kind, rows))
    declared = operation(count_files, short=("table",), details=False)
    assert declared.parameters[-1] == details_parameter("files", default=False)
    checked = declared.checked({"table": "t", "names": ["a"], "share": 1, DETAILS: True})
    assert declared.run(Call(None, checked)) == (Row, [Row("t", 3), Row(["a"], 1.0)])
    with pytest.raises(InvalidArgumentError, match="names"):
        declared.checked({"table": "t", "names": [" "]})


def test_one_row_or_a_data_frame(monkeypatch):
    def one(call: Call) -> Row:
        """Returns one row."""
        return Row("t", 1)

    def many(call: Call) -> DataFrame:
        """Returns rows."""
        return frame

    frame = object.__new__(DataFrame)
    monkeypatch.setattr("procedures.declare.operation.data_frame_of", lambda spark, kind, rows: rows)
    assert operation(one).returns_one
    assert operation(one).run(Call(None, {})) == [Row("t", 1)]
    declared = operation(many, row=Row)
    assert (declared.result, declared.run(Call(None, {}))) == ("table string, files bigint", frame)


def test_an_incomplete_function_is_rejected():
    def untyped(call: Call, when: bytes) -> Row:
        """Has no SQL type.

        Args:
            when: A moment.
        """
        return Row(str(when), 1)

    def undocumented(call: Call, when: str) -> Row:
        """Has no sentence."""
        return Row(when, 1)

    with pytest.raises(InvalidArgumentError, match="a type that SQL has"):
        operation(untyped)
    with pytest.raises(InvalidArgumentError, match="a sentence in the docstring"):
        operation(undocumented)
