"""Rows of procedures are declared once: the columns of SQL follow from their fields."""

from dataclasses import dataclass, field, fields
from datetime import datetime

import pytest

from procedures.calls.registry import procedures
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
        "position int, count bigint, share double, is_done boolean, name string, at timestamp_ltz, "
        "names array<string>, texts map<string,string>, counts map<bigint,bigint>"
    )


def test_a_type_without_a_column_is_a_mistake():
    @dataclass(frozen=True)
    class Odd:
        value: complex

    with pytest.raises(KeyError, match="complex"):
        ddl_of(Odd)


@pytest.mark.parametrize("name", procedures())
def test_rows_are_named_like_their_procedure(name):
    """Except those of ``use.compact``, which are rows of ``use.optimize``."""
    kind = procedures()[name].row
    assert kind.__name__ == "".join(part.title() for part in name.replace("compact", "optimize").split("_")) + "Row"
    assert procedures()[name].result == ddl_of(kind)
    assert fields(kind)
