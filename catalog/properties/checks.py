"""Values of the table properties below ``use.``: checked one by one when a statement sets them, or all when shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.sql.types import StructType

from catalog.columns.key_columns import key_columns, order_column
from catalog.errors import UseError
from catalog.properties.declared_stats import declared_stats
from catalog.properties.index_properties import (
    AUTO_COLUMNS_KEY,
    COLUMN_MAPPING,
    COLUMN_STATS_KEY,
    COLUMNS_KEY,
    COMPATIBILITY_KEY,
    CUBE_SIZE_KEY,
    IndexConfiguration,
    column_entries,
    is_automatic,
)
from catalog.properties.inherited import NOTHING_INHERITED
from catalog.properties.lifecycle_properties import ORDER_BY_KEY, PRIMARY_KEY_KEY
from catalog.properties.names import declared_property, ignored_property, in_namespace
from catalog.properties.target_file_size import TARGET_FILE_BYTES_KEY
from otree.errors import IndexFormatError
from otree.revision import newest_revision

# Properties that say how to index, and not what.
_OTHERS = (CUBE_SIZE_KEY, TARGET_FILE_BYTES_KEY, COLUMN_STATS_KEY, COMPATIBILITY_KEY)


def check_property(
    key: str, text: str, schema: StructType, partition: tuple[str, ...], mapping_mode: str = "none"
) -> None:
    """Checks the value of one property that exists, whatever the others are.

    Args:
        key: the property.
        text: its value.
        schema: the table's schema, logical names; without columns where it is not known yet.
        partition: partition columns, logical names.
        mapping_mode: Delta's property for column mapping.

    Raises:
        UseError: the value is not accepted.
    """
    declared = declared_property(key)
    if declared is not None:
        declared.parse(text)
    if key == AUTO_COLUMNS_KEY:
        column_entries(key, text)
    elif key == COLUMNS_KEY and schema.fields and not is_automatic(text):
        IndexConfiguration.of({key: text, COLUMN_MAPPING: mapping_mode}, schema, None, partition)
    elif key == COLUMN_STATS_KEY and schema.fields:
        declared_stats(text, schema)
    elif key == PRIMARY_KEY_KEY and schema.fields:
        key_columns(schema, key, text)
    elif key == ORDER_BY_KEY and schema.fields:
        order_column(schema, key, text)


def check_index(configuration: Mapping[str, str], schema: StructType, partition: tuple[str, ...]) -> None:
    """Checks the properties of the index together; see ``IndexConfiguration.of``.

    Raises:
        UseError: they do not fit each other or the schema.
        IndexFormatError: a revision cannot be read.
    """
    effective = NOTHING_INHERITED.effective(configuration, schema.names)
    IndexConfiguration.of(effective, schema, newest_revision(configuration), partition)


def property_errors(configuration: Mapping[str, str], schema: StructType, partition: tuple[str, ...]) -> list[UseError]:
    """What is wrong with a table's properties below ``use.``, as other engines may have set them.

    Args:
        configuration: the table's properties.
        schema: its schema, logical names.
        partition: its partition columns, logical names.
    """
    errors: list[UseError] = []
    for key in sorted(filter(in_namespace, configuration)):
        unknown = ignored_property(key)
        if unknown is not None:
            errors.append(unknown)
            continue
        try:
            if key == COLUMNS_KEY:
                # Columns that were renamed since are found by the revision that was made of them.
                check_index({k: v for k, v in configuration.items() if k not in _OTHERS}, schema, partition)
            else:
                check_property(key, configuration[key], schema, partition)
        except UseError as error:
            errors.append(error)
        except IndexFormatError:
            continue  # told by whatever reads the revision
    return errors


def described(errors: Iterable[UseError]) -> list[str]:
    """The errors as parts of a longer message."""
    return [error.message.removesuffix(".") for error in errors]
