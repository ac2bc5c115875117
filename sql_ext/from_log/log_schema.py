"""The schema of the log with the attributes of Spark's ``StructType`` that the lookup of columns needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from sql_ext.readers.table_columns import Field, collation_of, is_struct, sql_type

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class _Type:
    """A type that has no fields.

    Attributes:
        name: Spark's simple name.
    """

    name: str

    def simpleString(self) -> str:  # noqa: N802  # the name is Spark's
        """Returns Spark's simple name of the type."""
        return self.name


@dataclass(frozen=True)
class _Field:
    """A field, as Spark's ``StructField``."""

    stored: Field

    @property
    def name(self) -> str:
        """The logical name."""
        return str(self.stored["name"])

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The metadata, which has the stored name with column mapping."""
        return cast("Mapping[str, Any]", self.stored.get("metadata", {}))

    @cached_property
    def dataType(self) -> _Type | _Struct:  # noqa: N802  # the name is Spark's
        """The type."""
        kind = self.stored["type"]
        if is_struct(kind):
            return _Struct(kind["fields"])
        collation = collation_of(self.stored)
        return _Type(sql_type(kind) or str(kind["type"])) if collation is None else _Type(f"string collate {collation}")


@dataclass(frozen=True)
class _Struct:
    """A struct, as Spark's ``StructType``."""

    stored: Sequence[Field]

    @cached_property
    def fields(self) -> list[_Field]:
        """The fields in order."""
        return [_Field(field) for field in self.stored]

    @property
    def names(self) -> list[str]:
        """The logical names in order."""
        return [field.name for field in self.fields]

    def simpleString(self) -> str:  # noqa: N802  # the name is Spark's
        """Returns Spark's simple name of the type, without its fields."""
        return "struct"


def log_schema(fields: Sequence[Field]) -> StructType:
    """Returns a schema for ``catalog.columns`` and ``catalog.properties``, which look up names and types.

    Args:
        fields: of the schema, as in the log.
    """
    return cast("StructType", _Struct(fields))
