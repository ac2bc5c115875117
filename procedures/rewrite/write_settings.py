"""Write options and table properties: what a write through qbeast asks of its table's index."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import StructType

from catalog.errors import AmbiguousColumnError, IndexConfigurationError, InvalidArgumentError
from catalog.properties.index_properties import COLUMNS_KEY, ON_WRITE_KEY, IndexConfiguration, is_automatic
from catalog.properties.inherited import NOTHING_INHERITED
from otree.revision import newest_revision
from procedures.rewrite.write_options import PROPERTIES


def index_settings(
    options: Mapping[str, str],
    configuration: Mapping[str, str],
    schema: StructType,
    partition_columns: tuple[str, ...],
    replaces: bool,
    writes: bool,
) -> dict[str, str]:
    """The table properties that a write through qbeast brings along.

    Args:
        options: ``columnsToIndex``, ``cubeSize`` and ``columnStats`` as given.
        configuration: properties of the table, or those that a statement gives a new one.
        schema: columns that the table will have.
        partition_columns: logical names.
        replaces: whether all rows, and so the index, are replaced.
        writes: whether rows are written; an empty table may learn its columns with the first of them.

    Returns:
        Properties that differ from the table's.

    Raises:
        IndexConfigurationError: nothing says which columns to index, or a type that cannot be indexed.
        AmbiguousColumnError: several columns have the name of an index column that the write names.
        InvalidArgumentError: a malformed option, or columns other than those of the table that is appended to.
        UnknownNameError: a column that the schema does not have.
    """
    properties = {PROPERTIES[name]: value for name, value in options.items()}
    latest = None if replaces else newest_revision(configuration)
    effective = NOTHING_INHERITED.effective(configuration, schema.names)
    try:
        present = IndexConfiguration.of(effective, schema, latest, partition_columns) if not replaces else None
        merged = IndexConfiguration.of({**effective, **properties}, schema, latest, partition_columns)
    except AmbiguousColumnError:
        if COLUMNS_KEY in properties or newest_revision(configuration) is None:
            raise
        return {}  # A column was added since: the rows are written without a layout.
    if merged is None and is_automatic(configuration.get(COLUMNS_KEY)):
        raise IndexConfigurationError.not_chosen()
    if merged is None and writes:
        raise IndexConfigurationError(
            "The option columnsToIndex is missing: the first write through qbeast needs it, such as 'a,b:hashing', "
            f"unless the table has the property {COLUMNS_KEY}."
        )
    if present is not None and merged is not None and COLUMNS_KEY in properties:
        if present.transformers != merged.transformers:
            pairs = zip(present.logical_columns, present.transformers, strict=True)
            shown = ",".join(f"{column}:{transformer.kind}" for column, transformer in pairs)
            raise InvalidArgumentError.of(
                "columnsToIndex",
                properties[COLUMNS_KEY],
                f"the table is indexed by {shown}, which an append cannot change; overwrite it, or set {COLUMNS_KEY}",
            )
        # The same columns, perhaps spelled in another way: the table's spelling stays.
        del properties[COLUMNS_KEY]
    properties.setdefault(ON_WRITE_KEY, configuration.get(ON_WRITE_KEY, "true"))
    return {key: value for key, value in properties.items() if configuration.get(key) != value}
