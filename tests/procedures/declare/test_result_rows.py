"""Rows of procedures are declared once: the columns of SQL follow from their fields."""

from dataclasses import dataclass, field, fields, is_dataclass
from datetime import datetime

import pytest

from procedures.calls.registry import procedures
from procedures.declare import result_rows
from procedures.declare.result_rows import INT, ddl_of


@dataclass(frozen=True)
class Sample:
    """A row with a field of each type."""

    position: int = field(metadata=INT)
    count: int
    share: float | None
    is_done: bool
    name: str | None
    at: datetime | None
    names: list[str]
    texts: dict[str, str]
    counts: dict[int, int]


def test_columns_follow_from_fields():
    assert ddl_of(Sample) == (
        "position int, count bigint, share double, is_done boolean, name string, at timestamp, names array<string>, "
        "texts map<string,string>, counts map<bigint,bigint>"
    )


def test_a_type_without_a_column_is_a_mistake():
    @dataclass(frozen=True)
    class Odd:
        value: complex

    with pytest.raises(KeyError, match="complex"):
        ddl_of(Odd)


@pytest.mark.parametrize("kind", [k for k in vars(result_rows).values() if is_dataclass(k)], ids=lambda k: k.__name__)
def test_each_row_is_the_result_of_its_procedure(kind):
    declared = {name.replace("_", ""): procedure.result for name, procedure in procedures().items()}
    assert declared[kind.__name__.removesuffix("Row").lower()] == ddl_of(kind)
    assert fields(kind)
