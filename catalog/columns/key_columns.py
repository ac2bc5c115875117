"""Primary keys and the column that orders the rows of a key, as owners name them; Delta knows neither."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import AtomicType, DataType, StructType, VariantType

from catalog.columns.column_names import FoundColumn, find_column, split_names
from catalog.errors import InvalidArgumentError, UnknownNameError

_ACCEPTED = "names of columns such as id or `a b`, separated by commas"
_TYPES = "a column of a number, text, binary, boolean, date or time"


@dataclass(frozen=True)
class KeyOrder:
    """A primary key, and what orders the rows of a key.

    Attributes:
        key: columns whose values together name a row; none twice.
        order: column whose greatest value is that of the latest row.
    """

    key: tuple[FoundColumn, ...]
    order: FoundColumn

    @property
    def stored(self) -> tuple[str, ...]:
        """Stored names of the key's columns and of the order, which stay when columns are renamed."""
        return (*(column.stored for column in self.key), self.order.stored)

    @property
    def names(self) -> list[str]:
        """Those of ``columns`` that are the key."""
        return [f"key{i}" for i in range(len(self.key))]

    @property
    def columns(self) -> list[Column]:
        """The key, and ``order``, over rows of the table. Values of CHAR are equal with and without their padding."""
        named = [*zip(self.key, self.names, strict=True), (self.order, "order")]
        return [
            (F.rtrim(F.col(column.name)) if column.is_padded else F.col(column.name)).alias(name)
            for column, name in named
        ]


def key_order(schema: StructType, primary_key: tuple[str, str], order_by: tuple[str, str]) -> KeyOrder:
    """Finds the columns of a primary key and of its order.

    Args:
        schema: logical schema of the table.
        primary_key: what the text was given for, as errors show it, and the text: names separated by commas.
        order_by: likewise, one name.

    Raises:
        UnknownNameError: a column that does not exist.
        InvalidArgumentError: no names, a name twice, a column whose values cannot be compared, or an order by a column
            of the key.
    """
    key, order = key_columns(schema, *primary_key), order_column(schema, *order_by)
    if order.path in {column.path for column in key}:
        accepted = f"a column outside of the key: all rows with one {primary_key[0]} have the same value of it"
        raise InvalidArgumentError.of(*order_by, accepted)
    return KeyOrder(key, order)


def key_columns(schema: StructType, parameter: str, text: str) -> tuple[FoundColumn, ...]:
    """Finds the columns of a primary key.

    Args:
        schema: logical schema of the table.
        parameter: what the text was given for.
        text: names separated by commas.

    Raises:
        UnknownNameError: a column that does not exist.
        InvalidArgumentError: no names, a name twice, or a column whose values cannot be compared.
    """
    names = _names(parameter, text)
    columns = tuple(_column(schema, parameter, name) for name in names)
    if len({column.path for column in columns}) != len(columns):
        raise InvalidArgumentError.of(parameter, text, "each column once")
    return columns


def order_column(schema: StructType, parameter: str, text: str) -> FoundColumn:
    """Finds the column that orders the rows of a key.

    Args:
        schema: logical schema of the table.
        parameter: what the text was given for.
        text: one name.

    Raises:
        UnknownNameError: a column that does not exist.
        InvalidArgumentError: not one name, or a column whose values cannot be compared.
    """
    names = _names(parameter, text)
    if len(names) != 1:
        raise InvalidArgumentError.of(parameter, text, "the name of one column")
    return _column(schema, parameter, names[0])


def names_text(names: Sequence[str]) -> str:
    """The text of a list of names, which ``key_columns`` reads as the same list."""
    return ",".join(f"`{name.replace('`', '``')}`" if "," in name and "`" not in name else name for name in names)


def _names(parameter: str, text: str) -> list[str]:
    try:
        entries = split_names(text)
    except ValueError as error:
        raise InvalidArgumentError.of(parameter, text, _ACCEPTED) from error
    if not all(name for name, _ in entries):
        raise InvalidArgumentError.of(parameter, text, _ACCEPTED)
    return [name + (f":{kind}" if kind else "") for name, kind in entries]


def _column(schema: StructType, parameter: str, name: str) -> FoundColumn:
    column = find_column(schema, name)
    if column is None:
        raise UnknownNameError.of("column", name, schema.names, parameter)
    if not _is_comparable(column.data_type):
        raise InvalidArgumentError.of(parameter, name, f"{_TYPES}, and this one is {column.type_name}")
    return column


def _is_comparable(data_type: DataType) -> bool:
    return isinstance(data_type, AtomicType) and not isinstance(data_type, VariantType)
