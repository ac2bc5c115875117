"""``CALL use.quantiles``: estimates the quantiles of a column and optionally stores them for the index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pyspark.sql import functions as F

from catalog.columns.column_names import FoundColumn, find_column
from catalog.errors import IndexConfigurationError, InvalidArgumentError, UnknownNameError
from catalog.jvm.session import described_jobs, work_session
from catalog.properties.declared_stats import COLUMN_STATS_KEY, declared_stats, with_quantiles, written
from catalog.properties.index_properties import indexable_type, transformations_of
from catalog.table.managed_table import ManagedTable
from otree.data_types import STRING
from otree.transformation import NumericQuantilesTransformation, StringQuantilesTransformation
from otree.transformer import QUANTILES, Transformer
from procedures.declare.declaration import Call
from procedures.declare.operation import Constraint, Int, TableName, operation
from procedures.declare.result_rows import INT, ShownRow
from procedures.layout.index_columns import finite_value
from procedures.layout.quantile_estimates import fractions, numeric_quantiles, string_quantiles

MOST_QUANTILES = 10_000


@dataclass(frozen=True)
class QuantilesRow(ShownRow):
    """A quantile of a column.

    Attributes:
        position: position, from 0.
        fraction: share of the rows up to this quantile.
        value: the quantile as text; times in UTC.
    """

    position: int = field(metadata=INT)
    fraction: float
    value: str


def _validate(arguments: Mapping[str, Any]) -> None:
    if not arguments["column"].strip():
        raise InvalidArgumentError.of("column", arguments["column"], "the name of a column")


def quantiles(
    call: Call,
    table: TableName,
    column: str,
    *,
    n: Annotated[Int, Constraint(least=2, most=MOST_QUANTILES)] = 50,
    relative_error: Annotated[float, Constraint(least=0.0001, most=0.5)] = 0.01,
    store: bool = False,
) -> list[QuantilesRow]:
    """Estimates the quantiles of a column and returns them. With store, the index uses them for <column>:quantiles.

    Args:
        column: Column of numbers, dates, timestamps or strings; a nested field as a.b.
        n: Number of quantiles, including the smallest and the largest value.
        relative_error: Maximum error of a quantile's rank, as a share of the rows.
        store: Stores the quantiles in the table property use.index.columnStats.

    Raises:
        UseError: an argument is invalid, or a concurrent commit conflicts; nothing was stored.
    """
    managed = ManagedTable.find(call.spark, table)
    if store:
        managed.check_rights()
    snapshot = managed.snapshot()
    found = find_column(snapshot.schema, column)
    if found is None:
        raise UnknownNameError.of("column", column, snapshot.schema.names)
    if QUANTILES not in transformations_of(found.data_type):
        raise IndexConfigurationError.unindexable(
            found.plain_name,
            f"{found.type_name} as {QUANTILES}",
            "numbers, dates, timestamps and strings have quantiles",
        )
    if store:
        # Checked before the data is read, so that an invalid property is an early error.
        declared_stats(snapshot.settings.get(COLUMN_STATS_KEY), snapshot.schema)
    estimated = _estimated(managed, found, n, relative_error)
    if store:
        _store(managed, found, estimated)
    values: Sequence[float | str] = estimated
    return [
        QuantilesRow(position, fraction, str(written(value, found.data_type)))
        for position, (fraction, value) in enumerate(zip(fractions(n), values, strict=False))
    ]


def _estimated(
    table: ManagedTable, column: FoundColumn, count: int, error: float
) -> tuple[float, ...] | tuple[str, ...]:
    """Returns the quantiles in the unit of the index; empty if the column has no values."""
    session = work_session(table.spark)
    data = session.table(table.name)
    data_type = indexable_type(column.data_type) or ""
    with described_jobs(session, f"USE quantiles: column {column.plain_name} of {table.name}"):
        if data_type == STRING:
            values = data.select(F.col(column.name).alias("value"))
            row_count = values.count()
            return string_quantiles(values, [F.col("value")], row_count, count, error)[0]
        value = finite_value(session, Transformer(QUANTILES, column.stored, data_type), F.col(column.name))
        row = data.agg(numeric_quantiles(value, count, error).alias("quantiles")).collect()[0]
        return tuple(row.quantiles or ())


def _store(table: ManagedTable, column: FoundColumn, quantiles: tuple[float, ...] | tuple[str, ...]) -> None:
    """Adds the quantiles to the table property and changes nothing else."""
    stored: tuple[float, ...] | tuple[str, ...] | None
    if indexable_type(column.data_type) == STRING:
        texts = StringQuantilesTransformation.of_estimate([str(q) for q in quantiles])
        stored = texts.quantiles if texts else None
    else:
        numbers = NumericQuantilesTransformation.of_estimate([float(q) for q in quantiles], "DoubleDataType")
        stored = numbers.quantiles if numbers else None
    if stored is None:
        raise InvalidArgumentError.of(
            "store",
            True,
            f"column '{column.plain_name}' has fewer than two different values, so there are no quantiles to store",
        )
    # Read the current property: another writer may have changed it while the data was read.
    snapshot = table.snapshot()
    before = snapshot.configuration.get(COLUMN_STATS_KEY)
    text = with_quantiles(before, snapshot.schema, column, stored).replace("\\", "\\\\").replace("'", "\\'")
    session = work_session(table.spark)
    session.conf.set("spark.sql.parser.escapedStringLiterals", "false")
    session.sql(f"ALTER TABLE {table.name} SET TBLPROPERTIES ('{COLUMN_STATS_KEY}' = '{text}')")


QUANTILES_PROCEDURE = operation(quantiles, validate=_validate)
