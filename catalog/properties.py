"""The table properties of ours, typed: parsed once, refused with a clear error when they do not fit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql.types import DataType, StringType, StructField, StructType

from catalog.errors import IndexConfigurationError, InvalidArgumentError, UnknownNameError
from otree.revision import Revision
from otree.transformer import Transformer, format_data_type

COLUMNS_KEY = "use.index.columns"
AS_INDEXED_KEY = "use.index.columnsAsIndexed"
# Per revision, how its columns hashed when it was made: a widened type hashes differently, and so weighs differently.
HASH_TYPES_KEY_PREFIX = "use.index.hashTypes."
CUBE_SIZE_KEY = "use.index.cubeSize"
TARGET_FILE_BYTES_KEY = "use.index.targetFileBytes"

DEFAULT_TARGET_FILE_BYTES = 128 * 1024 * 1024
CUBE_SIZE_RANGE = (1_000, 5_000_000)
TRANSFORMATIONS = ("linear", "hashing")

_UNITS = {"": 1, "b": 1, "k": 1024, "kb": 1024, "m": 1024**2, "mb": 1024**2, "g": 1024**3, "gb": 1024**3}


def bytes_of(key: str, text: str) -> int:
    """Parses a size such as ``134217728`` or ``128MB``.

    Raises:
        InvalidArgumentError: not a positive size.
    """
    match = re.fullmatch(r"\s*(\d+)\s*([a-zA-Z]*)\s*", text)
    if match is None or match[2].lower() not in _UNITS or int(match[1]) == 0:
        raise InvalidArgumentError.of(key, text, "a positive number of bytes, such as 134217728 or 128MB")
    return int(match[1]) * _UNITS[match[2].lower()]


@dataclass(frozen=True)
class IndexConfiguration:
    """What a table's properties ask of its index.

    Attributes:
        transformers: one per indexed column, physical names.
        logical_columns: the same columns as users name them.
        cube_size: rows per cube, or None for the rows of one target file.
        target_file_bytes: size that data files should have.
        hash_types: how each column hashes today; see ``hash_type``.
    """

    transformers: tuple[Transformer, ...]
    logical_columns: tuple[str, ...]
    cube_size: int | None
    target_file_bytes: int
    hash_types: tuple[str, ...]

    @classmethod
    def of(
        cls,
        configuration: Mapping[str, str],
        schema: StructType,
        latest: Revision | None,
        partition: tuple[str, ...] = (),
    ) -> IndexConfiguration | None:
        """Reads the properties; None when the table has no index columns.

        A table indexed by another writer of the format has a revision and no ``use.index.columns``: its newest
        revision says what is indexed.

        Raises:
            UnknownNameError: a column that the schema does not have.
            IndexConfigurationError: a column type that cannot be indexed.
            InvalidArgumentError: a malformed value.
        """
        target = bytes_of(
            TARGET_FILE_BYTES_KEY, configuration.get(TARGET_FILE_BYTES_KEY, str(DEFAULT_TARGET_FILE_BYTES))
        )
        size_text = configuration.get(CUBE_SIZE_KEY)
        cube_size: int | None = None
        if size_text is not None:
            if not re.fullmatch(r"\d{1,9}", size_text.strip()) or int(size_text) < 1:
                raise InvalidArgumentError.of(CUBE_SIZE_KEY, size_text, "a positive whole number of rows")
            cube_size = int(size_text)
        text = configuration.get(COLUMNS_KEY)
        stored = {physical_name(field) for field in schema.fields}
        as_indexed = (
            latest is not None
            and configuration.get(AS_INDEXED_KEY) == text
            and all(t.column in stored for t in latest.transformers)
        )
        if text is not None and not as_indexed:
            columns = _columns(text, schema, partition)
            names = tuple(name for name, _ in columns)
            return cls(tuple(t for _, t in columns), names, cube_size, target, _hash_types(schema, names))
        if latest is None:
            return None
        # Resolved when the revision was made: since then a column may have been renamed, or its type widened.
        logical = tuple(logical_name(schema, t.column) for t in latest.transformers)
        transformers = tuple(
            _transformer(schema[name], t.kind) for name, t in zip(logical, latest.transformers, strict=True)
        )
        size = cube_size or (None if text else latest.desired_cube_size)
        return cls(transformers, logical, size, target, _hash_types(schema, logical))

    def remembered(self, configuration: Mapping[str, str], revision_id: int) -> dict[str, str]:
        """Properties that remember for which column text, and with which types, a revision is made."""
        text = {AS_INDEXED_KEY: configuration[COLUMNS_KEY]} if COLUMNS_KEY in configuration else {}
        return {**text, HASH_TYPES_KEY_PREFIX + str(revision_id): ";".join(self.hash_types)}


def hash_type(sql_type: str) -> str:
    """The class of types whose equal values hash equally.

    Spark hashes the small integers as an int, a decimal of up to 18 digits as its unscaled long and a longer one as
    bytes.
    """
    if sql_type in ("tinyint", "smallint", "int"):
        return "int"
    decimal = re.fullmatch(r"decimal\((\d+),(\d+)\)", sql_type)
    if decimal is not None:
        return f"decimal({'long' if int(decimal[1]) <= 18 else 'bytes'},{decimal[2]})"
    return sql_type


def _hash_types(schema: StructType, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(hash_type(schema[name].dataType.simpleString()) for name in names)


def physical_name(field: StructField) -> str:
    """The name under which column mapping stores a field; its own name without mapping."""
    return str((field.metadata or {}).get("delta.columnMapping.physicalName", field.name))


def logical_name(schema: StructType, physical: str) -> str:
    """The current name of the column stored as ``physical``."""
    for field in schema.fields:
        if physical_name(field) == physical:
            return field.name
    raise UnknownNameError.of("column", physical, schema.names)


def indexable_type(data_type: DataType) -> str | None:
    """The format's name of a Spark type; None when it cannot be indexed."""
    if isinstance(data_type, StringType):
        # Equality under another collation is not equality of bytes, which hashing relies on.
        return format_data_type("string") if data_type.simpleString() == "string" else None
    return format_data_type(data_type.simpleString())


def _columns(text: str, schema: StructType, partition: tuple[str, ...]) -> list[tuple[str, Transformer]]:
    by_name = {field.name.lower(): field for field in schema.fields}
    found: list[tuple[str, Transformer]] = []
    for entry in text.split(","):
        name, _, kind = (part.strip() for part in entry.partition(":"))
        if not name:
            raise InvalidArgumentError.of(COLUMNS_KEY, text, "column names separated by commas, such as 'a,b:hashing'")
        field = by_name.get(name.lower())
        if field is None:
            raise UnknownNameError.of("column", name, schema.names)
        if any(field.name == earlier for earlier, _ in found):
            raise InvalidArgumentError.of(COLUMNS_KEY, text, f"column '{name}' must be named once")
        if field.name in partition:
            raise InvalidArgumentError.of(
                COLUMNS_KEY, text, f"'{name}' is a partition column, whose values already select files"
            )
        found.append((field.name, _transformer(field, kind)))
    if len(found) > 16:
        raise InvalidArgumentError.of(COLUMNS_KEY, text, "at most 16 columns")
    return found


def _transformer(field: StructField, kind: str) -> Transformer:
    type_name = field.dataType.simpleString()
    data_type = indexable_type(field.dataType)
    accepted = "numbers, dates, timestamps and strings are accepted"
    if data_type is None:
        raise IndexConfigurationError.unindexable(field.name, type_name, accepted)
    default = "hashing" if data_type == "StringDataType" else "linear"
    chosen = kind.lower() or default
    if chosen not in TRANSFORMATIONS:
        raise UnknownNameError.of("transformation", kind, TRANSFORMATIONS)
    if chosen != default:
        raise IndexConfigurationError.unindexable(
            field.name, f"{type_name} as {chosen}", f"its transformation is {default}"
        )
    return Transformer(chosen, physical_name(field), data_type)
