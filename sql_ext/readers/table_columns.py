"""The columns of a table: their names for users and in files, and their values as Spark reads them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from catalog.errors import NotSupportedError, UnknownNameError

Field = Mapping[str, Any]
"""A field of a schema as the Delta log has it: ``name``, ``type`` and ``metadata``."""

_SQL_TYPES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
_ARROW_TYPES = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_CHAR_TYPE, _CHAR = "__CHAR_VARCHAR_TYPE_STRING", re.compile(r"\bchar\((\d+)\)", re.IGNORECASE)
_COLLATIONS = "__COLLATIONS"
_TYPE_CHANGES = "delta.typeChanges"


@dataclass(frozen=True)
class Column:
    """A column, or a field of a struct.

    Attributes:
        path: its names from the outermost.
        stored_path: the same as files and statistics have them.
        sql_type: its type as Spark writes it in lower case, such as ``bigint``.
        width: number of characters of CHAR(n) at the top level; None for other types.
        collation: its collation; None for the order of bytes.
        was_float: a DOUBLE that was widened from FLOAT.
        log_type: its type as the log has it.
    """

    path: tuple[str, ...]
    stored_path: tuple[str, ...]
    sql_type: str
    width: int | None = None
    collation: str | None = None
    was_float: bool = False
    log_type: Any = dataclasses.field(default=None, compare=False)

    @property
    def name(self) -> str:
        """Its name for people."""
        return ".".join(self.path)

    @property
    def stored_name(self) -> str:
        """Its name in the index."""
        return ".".join(self.stored_path)


@dataclass(frozen=True)
class TableColumns:
    """The columns of a table.

    Attributes:
        fields: fields of the schema as in the log.
        partitioned_by: names of the partition columns.
    """

    fields: tuple[Field, ...]
    partitioned_by: tuple[str, ...]

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns in Arrow's types."""
        return pa.schema([pa.field(field["name"], arrow_type(field["type"])) for field in self.fields])

    def find(self, names: Sequence[str]) -> Column:
        """Returns the column of a path of names, in any case.

        Raises:
            UnknownNameError: there is none.
        """
        found = _find(self.fields, names)
        if found is None:
            raise UnknownNameError.of("column", ".".join(names), [field["name"] for field in self.fields])
        return found

    @property
    def leaves(self) -> Iterator[Column]:
        """All columns, and after a struct its fields."""
        return _leaves(self.fields)

    @cached_property
    def _by_stored_name(self) -> Mapping[str, Sequence[Column]]:
        found: dict[str, list[Column]] = {}
        for column in self.leaves:
            found.setdefault(column.stored_name, []).append(column)
        return found

    def find_stored(self, stored: str) -> Column | None:
        """Returns the column that the index calls ``stored``; None without one, and if several may be meant."""
        columns = self._by_stored_name.get(stored, ())
        return columns[0] if len(columns) == 1 else None

    def is_ambiguous(self, stored: str) -> bool:
        """Returns whether the index has one name for several columns, such as ``a.`b.c``` and ```a.b`.c``."""
        return len(self._by_stored_name.get(stored, ())) > 1

    def field(self, name: str) -> Field:
        """Returns a top-level field."""
        return next(field for field in self.fields if field["name"] == name)


def _find(fields: Sequence[Field], names: Sequence[str]) -> Column | None:
    name, *rest = names
    field = next((field for field in fields if field["name"].lower() == name.lower()), None)
    if field is None or not rest:
        return None if field is None else _column(field)
    inner = _find(field["type"]["fields"], rest) if is_struct(field["type"]) else None
    return None if inner is None else _inside(field, inner)


def _leaves(fields: Sequence[Field]) -> Iterator[Column]:
    for field in fields:
        yield _column(field)
        if is_struct(field["type"]):
            for inner in _leaves(field["type"]["fields"]):
                yield _inside(field, inner)


def _column(field: Field) -> Column:
    metadata = field.get("metadata", {})
    char = _CHAR.fullmatch(metadata.get(_CHAR_TYPE, ""))
    return Column(
        (field["name"],),
        (stored_name(field),),
        sql_type(field["type"]),
        int(char[1]) if char is not None else None,
        collation_of(field),
        any(change.get("fromType") == "float" for change in metadata.get(_TYPE_CHANGES, ())),
        field["type"],
    )


def collation_of(field: Field) -> str | None:
    """Returns the collation of a column; None for the order of bytes."""
    # The collations of the values inside of a nested type have longer keys.
    found = field.get("metadata", {}).get(_COLLATIONS, {}).get(field["name"])
    return None if found is None else str(found)


def has_char_inside(field: Field) -> bool:
    """Returns whether a top-level column has CHAR(n) inside of a struct, an array or a map."""
    kind = field.get("metadata", {}).get(_CHAR_TYPE, "")
    return _CHAR.search(kind) is not None and _CHAR.fullmatch(kind) is None


def _inside(field: Field, inner: Column) -> Column:
    path, stored_path = (field["name"], *inner.path), (stored_name(field), *inner.stored_path)
    # Spark takes the width of a field from the metadata of the top-level column, see has_char_inside.
    return replace(inner, path=path, stored_path=stored_path, width=None)


def is_struct(kind: Any) -> bool:
    """Returns whether a type of the log has fields."""
    return isinstance(kind, Mapping) and kind["type"] == "struct"


def stored_name(field: Field) -> str:
    """Returns the name of a field in files; its own without column mapping."""
    return str(field.get("metadata", {}).get("delta.columnMapping.physicalName", field["name"]))


def name_in_file(field: Field, names: Sequence[str]) -> str | None:
    """Returns the name of a field in a file; None if the file lacks it.

    Spark, with its default ``spark.sql.caseSensitive``, also finds names in another case.

    Args:
        field: field of the table.
        names: names of the file at the same place.

    Raises:
        NotSupportedError: several names differ from the field's in their case only.
    """
    stored = stored_name(field)
    if stored in names:
        return stored
    found = [name for name in names if name.lower() == stored.lower()]
    if len(found) > 1:
        raise NotSupportedError(f"A file has several fields for the column {field['name']}: {', '.join(found)}.")
    return found[0] if found else None


def has_ids_of_log(fields: Sequence[Field], stored: Sequence[pa.Field]) -> bool:
    """Returns whether fields that are found in a file by name are those that column mapping finds by id, at all levels.

    Args:
        fields: fields of the table.
        stored: fields of the file at the same place.

    Raises:
        NotSupportedError: several names differ from a field's in their case only.
    """
    ids = {of_file.name: _id_in_file(of_file) for of_file in stored}
    types = {of_file.name: of_file.type for of_file in stored}
    for field in fields:
        name, number = name_in_file(field, list(ids)), field.get("metadata", {}).get("delta.columnMapping.id")
        # Columns of Delta's own, such as those of row tracking, have no ids beside others that have some.
        is_unknown = name is None and not any(ids.values())
        if is_unknown or [other for other, found in ids.items() if found == number] != ([] if name is None else [name]):
            return False
        if name is not None and not _has_ids_inside(field["type"], types[name]):
            return False
    return True


def _has_ids_inside(kind: Any, stored: pa.DataType) -> bool:
    if not isinstance(kind, Mapping):
        return True
    if kind["type"] == "struct":
        return pa.types.is_struct(stored) and has_ids_of_log(kind["fields"], list(stored))
    if kind["type"] == "array":
        return pa.types.is_list(stored) and _has_ids_inside(kind["elementType"], stored.value_type)
    pairs = ((kind["keyType"], "key_type"), (kind["valueType"], "item_type"))
    return pa.types.is_map(stored) and all(_has_ids_inside(inner, getattr(stored, name)) for inner, name in pairs)


def _id_in_file(field: pa.Field) -> int | None:
    found = (field.metadata or {}).get(b"PARQUET:field_id")
    return None if found is None else int(found)


def sql_type(kind: Any) -> str:
    """Returns a type of the log as Spark writes it; '' for nested types."""
    return _SQL_TYPES.get(kind, kind) if isinstance(kind, str) else ""


def arrow_type(kind: Any) -> pa.DataType:
    """Returns a type of the log as Arrow's.

    Raises:
        NotSupportedError: Arrow has no such type.
    """
    if isinstance(kind, str):
        if kind.startswith("decimal"):
            precision, scale = kind[8:-1].split(",")
            return pa.decimal128(int(precision), int(scale))
        found = _ARROW_TYPES.get("string" if kind.startswith(("char(", "varchar(")) else kind)
        if found is not None:
            return found
    elif kind["type"] == "struct":
        return pa.struct([pa.field(field["name"], arrow_type(field["type"])) for field in kind["fields"]])
    elif kind["type"] == "array":
        return pa.list_(arrow_type(kind["elementType"]))
    elif kind["type"] == "map":
        return pa.map_(arrow_type(kind["keyType"]), arrow_type(kind["valueType"]))
    raise NotSupportedError(f"Columns of the type {kind} cannot be read without Spark.")


def as_read(array: pa.Array, kind: Any) -> pa.Array:
    """Returns values of a file with the names and types of the table.

    Args:
        array: values as the file has them.
        kind: type of the log.

    Raises:
        NotSupportedError: names of a struct differ in their case only.
    """
    if isinstance(kind, str):
        return _cast(array, arrow_type(kind))
    if kind["type"] == "struct":
        names = [field.name for field in array.type]
        stored = [name_in_file(field, names) for field in kind["fields"]]
        parts = [
            pa.nulls(len(array), arrow_type(field["type"]))
            if name is None
            else as_read(pc.struct_field(array, name), field["type"])
            for field, name in zip(kind["fields"], stored, strict=True)
        ]
        fields = list(arrow_type(kind))
        return pa.StructArray.from_arrays(parts, fields=fields, mask=array.is_null())
    wanted = arrow_type(kind)
    if kind["type"] == "array":
        values = as_read(array.flatten(), kind["elementType"])
        return pa.ListArray.from_arrays(_offsets(array), values, type=wanted, mask=array.is_null())
    entries = pa.array(array.to_pylist(), array.type) if array.offset else array
    keys, items = as_read(entries.keys, kind["keyType"]), as_read(entries.items, kind["valueType"])
    made = pa.MapArray.from_arrays(entries.offsets, keys, items).cast(wanted)
    return pc.if_else(array.is_valid(), made, pa.scalar(None, wanted))


def padded(array: pa.Array, width: int | None) -> pa.Array:
    """Returns values of CHAR(n) as Spark reads them; those of other types, without a width, as they are."""
    return array if width is None else pc.utf8_rpad(array, width)


def _offsets(array: pa.Array) -> pa.Array:
    lengths = pc.fill_null(pc.list_value_length(array), 0).cast(pa.int32())
    return pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])


def _cast(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    if array.type == wanted:
        return array
    if pa.types.is_timestamp(array.type) and pa.types.is_timestamp(wanted):
        # A file's time without a zone is in UTC, which is also how INT96 is read.
        moments = array.cast(pa.timestamp("us", array.type.tz), safe=False)
        return moments.cast(pa.int64()).cast(wanted)
    if pa.types.is_date(array.type) and pa.types.is_timestamp(wanted):
        return array.cast(pa.timestamp("us")).cast(pa.int64()).cast(wanted)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array.cast(wanted)
