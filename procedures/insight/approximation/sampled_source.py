"""The rows below an aggregation, restricted to weights of one indexed table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, StructField, StructType

from catalog.columns.column_names import logical_name
from catalog.errors import UnknownNameError
from catalog.jvm.query_trees import ExpressionTree, PlanTree, plan_with_names, projection_with
from catalog.jvm.session import reading_session
from catalog.jvm.skipping_report import SkippingScan, plan_of_data
from catalog.pruning.read_planning import sample_facts
from otree.weight import WeightRange
from procedures.insight.approximation.aggregate_query import AggregateQuery, Input, not_supported
from procedures.insight.approximation.selected_keys import has_selected_keys
from procedures.insight.approximation.source_columns import columns_of, conditions_between, definitions_below

WEIGHT = "__use_weight"
GROUP = "__use_group"
# The weight of a row is this function of its indexed columns.
_WEIGHT_FUNCTION = "Murmur3Hash"
_PASSING = frozenset({"SubqueryAlias", "View", "ResolvedHint"})
_ROW_BY_ROW = frozenset({"Project", "Filter", *_PASSING})
# The sides of a join from which each row contributes on its own.
_SIDES = {
    "INNER": (0, 1),
    "CROSS": (0, 1),
    "LEFT OUTER": (0,),
    "RIGHT OUTER": (1,),
    "LEFT SEMI": (0,),
    "LEFT ANTI": (0,),
}
_INSTEAD = "Samples are taken below filters, projections, views and joins of one indexed table with others."


def key_column(number: int) -> str:
    """Name of the column of a key in the rows of a sample."""
    return f"k{number}"


def input_column(number: int) -> str:
    """Name of the column of an input in the rows of a sample."""
    return f"i{number}"


def hash_of_keys(rows: DataFrame, number: int) -> Column:
    """Returns a hash of the keys of a group; those of different groups differ.

    A NULL alone does not change Spark's hash: (NULL, 5) would have that of (5, NULL), also inside of a key.

    Args:
        rows: rows with the keys.
        number: how many keys they have.
    """
    names = [key_column(n) for n in range(number)]
    return F.xxhash64(*names, *(_shape(F.col(name), rows.schema[name].dataType) for name in names))


@dataclass(frozen=True, eq=False)
class SampledSource:
    """The rows that a query aggregates.

    Attributes:
        spark: session of the query.
        query: the query.
        relation: the scan of the indexed table.
        scan: facts about the table.
        columns: its columns whose hash is the weight.
        coarse: why the size of a sample can differ much from its fraction; None if there is no known reason.
    """

    spark: SparkSession
    query: AggregateQuery
    relation: PlanTree
    scan: SkippingScan
    columns: tuple[str, ...]
    coarse: str | None

    @classmethod
    def of(cls, spark: SparkSession, query: AggregateQuery, planned: DataFrame) -> SampledSource:
        """Finds the table of which samples are taken.

        Args:
            spark: session of the query.
            query: the query.
            planned: the same query as a DataFrame. Samples read the version that its plan reads.

        Raises:
            NotSupportedError: there is no such table, or the rows cannot be sampled.
        """
        _check_expressions(spark, query)
        scans = _scanned_leaves(spark, query.source, planned)
        indexed = [(leaf, scan) for leaf, scan in scans if _is_indexed(scan)]
        tables = ", ".join(str(scan.counts["table"]) for _, scan in indexed)
        if len(indexed) > 1:
            raise not_supported(f"A query over several indexed tables ({tables})", _INSTEAD)
        if not indexed:
            named = ", ".join(str(scan.counts["table"]) for _, scan in scans) or "no Delta table"
            raise not_supported(
                f"A query over tables without indexed files ({named})",
                "Set index columns with use.index, and index the files with use.optimize.",
            )
        ((relation, scan),) = indexed
        hidden = [column.name for column in relation.output if column.name not in scan.schema.names]
        if hidden:
            raise not_supported(f"The column {hidden[0]}", "Use columns of the schema.")
        facts = sample_facts(scan.configuration)
        assert facts is not None
        if facts.has_gaps:
            raise not_supported(
                f"A query over {scan.counts['table']}, whose rows were selected by a sample or split,",
                "Index other columns with use.index, or run the query as it is.",
            )
        columns = tuple(_name(scan, column) for column in facts.columns)
        source = cls(spark, query, relation, scan, columns, facts.coarse)
        source._check(query.source)
        source._check_keys()
        return source

    @property
    def table(self) -> str:
        """Full name of the sampled table."""
        return str(self.scan.counts["table"])

    @property
    def version(self) -> int:
        """Version of the sampled table that all samples read."""
        return int(self.scan.counts["version"])

    def _check(self, node: PlanTree) -> None:
        """Refuses nodes below which a sample would give other rows."""
        if node.java == self.relation.java:
            return
        below = [number for number, child in enumerate(node.children) if self._contains(child)]
        if node.kind == "Join":
            if node.join_type not in _SIDES or below[0] not in _SIDES[node.join_type]:
                side = "this side of " if node.join_type in _SIDES else ""
                raise not_supported(f"{side.capitalize()}{node.join_type} JOIN", _INSTEAD)
        elif node.kind not in _ROW_BY_ROW:
            raise not_supported(f"{node.kind} below the aggregation", _INSTEAD)
        self._check(node.children[below[0]])

    def _check_keys(self) -> None:
        """Refuses to compare the index columns with keys that a sample or split has selected, or may have selected."""
        attributes = {attribute.name: attribute for attribute in self.relation.output}
        columns = [attributes[name] for name in self.columns if name in attributes]
        if len(columns) == len(self.columns) and has_selected_keys(self.spark, self.query.plan, self.relation, columns):
            raise not_supported(
                f"A query with keys of {self.table} that a sample or split has selected, or may have selected,",
                "Run the query as it is.",
            )

    def _contains(self, node: PlanTree) -> bool:
        return node.java == self.relation.java or any(map(self._contains, node.children))

    def _weight(self) -> Column:
        return F.hash(*(F.col(column) for column in self.columns))

    @property
    def has_every_row(self) -> bool:
        """Whether each row of the table is one row of the query."""
        node = self.query.source
        while node.java != self.relation.java:
            if node.kind not in ("Project", *_PASSING):
                return False
            (node,) = node.children
        return not self.query.having

    @cached_property
    def definitions(self) -> Mapping[int | None, ExpressionTree]:
        """What defines the attributes of the rows, by their ids."""
        return definitions_below(self.query.source)

    def columns_of(self, expressions: Iterable[ExpressionTree]) -> list[ExpressionTree]:
        """Returns the columns of the table that expressions over the rows are made of."""
        return columns_of(expressions, self.relation, self.definitions)

    @cached_property
    def column_share(self) -> float:
        """The columns that the query reads, as a share of a row, by the bytes that Spark expects of each type."""
        inputs = [
            (*each.values, *([each.condition] if each.condition is not None else [])) for each in self.query.inputs
        ]
        used = [*self.query.keys, *chain(*inputs), *conditions_between(self.query.source, self.relation)]
        columns = self.columns_of(used)
        return sum(column.bytes for column in columns) / sum(column.bytes for column in self.relation.output)

    def rows(self, weights: WeightRange | None, shifts: Sequence[float], most_bytes: int) -> DataFrame:
        """Returns the keys, inputs and weights of the rows with some weights.

        Args:
            weights: the weights; None for no row.
            shifts: the number that is subtracted from each input.
            most_bytes: what they are expected to read at most.

        Returns:
            Columns ``k0`` … of the keys, ``i0`` … of the inputs as DOUBLE, ``WEIGHT``, and with keys their hash
            ``GROUP``.
        """
        spark = reading_session(self.spark, most_bytes)
        # All samples read one version.
        present = spark.read.option("versionAsOf", str(self.version)).table(self.table)
        weight = self._weight()
        if weights is None:
            present = present.where(F.lit(False))
        elif weights != WeightRange.ALL:
            present = present.where((weight >= F.lit(weights.first)) & (weight <= F.lit(weights.last)))
        relation = self._relation(present.withColumn(WEIGHT, weight))
        data = self._weighed(self.query.source, relation).data(spark)
        keys = [key.column(self.spark).alias(key_column(n)) for n, key in enumerate(self.query.keys)]
        inputs = [
            (self._number(value) - F.lit(shift) if shift else self._number(value)).alias(input_column(n))
            for n, (value, shift) in enumerate(zip(self.query.inputs, shifts, strict=True))
        ]
        named = [result.column(self.spark) for result in self.query.key_attributes] if self.query.having else []
        rows = data.select(*keys, *inputs, F.col(WEIGHT), *named)
        for condition in self.query.having:
            rows = rows.where(condition.column(self.spark))
        hashed = [hash_of_keys(rows, len(keys)).alias(GROUP)] if keys else []
        return rows.select(*rows.columns[: len(keys) + len(inputs) + 1], *hashed)

    def _number(self, value: Input) -> Column:
        columns = [operand.column(self.spark) for operand in value.values]
        if value.is_condition:
            number = F.when(columns[0], F.lit(1.0))
        elif value.counts:
            present = columns[0].isNotNull()
            for column in columns[1:]:
                present = present & column.isNotNull()
            number = F.when(present, F.lit(1.0))
        else:
            number = columns[0].cast("double")
        if value.condition is not None:
            number = F.when(value.condition.column(self.spark), number)
        return number

    def _relation(self, data: DataFrame) -> PlanTree:
        """The relation's attributes over another DataFrame of the table, with its additional columns."""
        return plan_with_names(data, {attribute.name: attribute for attribute in self.relation.output})

    def _weighed(self, node: PlanTree, relation: PlanTree) -> PlanTree:
        """The same node over another relation, with the weight as one more column."""
        if node.java == self.relation.java:
            return relation
        if not self._contains(node):
            return node
        children = [self._weighed(child, relation) for child in node.children]
        if node.kind == "Project":
            return projection_with(self.spark, node, children[0], WEIGHT)
        return children[0] if node.kind in _PASSING else node.with_children(self.spark, children)


def _check_expressions(spark: SparkSession, query: AggregateQuery) -> None:
    nodes = [query.plan]
    while nodes:
        node = nodes.pop()
        for expression in node.expressions:
            if not expression.is_deterministic:
                raise not_supported(f"{expression.sql}, which is not deterministic,", "Use deterministic functions.")
            if _WEIGHT_FUNCTION in expression.kinds:
                raise not_supported(f"{expression.sql}, by which samples are taken,", "Use xxhash64 instead of hash.")
        for subquery in node.subquery_plans:
            if any(_is_indexed(scan) for leaf in _leaves(subquery) for scan in _scans(spark, leaf)):
                raise not_supported("A subquery over an indexed table", _INSTEAD)
        nodes.extend(node.children)


def _leaves(node: PlanTree) -> list[PlanTree]:
    if not node.children:
        return [node]
    return [leaf for child in node.children for leaf in _leaves(child)]


def _scanned_leaves(spark: SparkSession, source: PlanTree, planned: DataFrame) -> list[tuple[PlanTree, SkippingScan]]:
    """The relations below a node, with their scans."""
    leaves = _leaves(source)
    if len(leaves) == 1:
        scans = plan_of_data(planned).scans
        # A plan can have no scan, as that of count(*), or further ones, of subqueries.
        if len(scans) == 1:
            return [(leaves[0], scans[0])]
    return [(leaf, scan) for leaf in leaves for scan in _scans(spark, leaf)]


def _scans(spark: SparkSession, leaf: PlanTree) -> tuple[SkippingScan, ...]:
    return plan_of_data(leaf.data(spark)).scans


def _is_indexed(scan: SkippingScan) -> bool:
    return sample_facts(scan.configuration) is not None


def _name(scan: SkippingScan, stored: str) -> str:
    try:
        return logical_name(scan.schema, stored)
    except UnknownNameError as error:
        subject = f"A sample by the column {stored}, which the table no longer has,"
        raise not_supported(subject, "Index other columns with use.index.") from error


def _shape(value: Column, data_type: DataType) -> Column:
    """Where a value, or a part of it, is NULL, and how long its arrays are: Spark hashes [[1], [2]] as [[1, 2]]."""
    parts = [F.isnull(value)]
    if isinstance(data_type, StructType):
        # Two fields of a struct may have the same name.
        numbered = StructType([StructField(str(n), field.dataType) for n, field in enumerate(data_type)])
        parts += [_shape(value.cast(numbered)[field.name], field.dataType) for field in numbered]
    elif isinstance(data_type, ArrayType):
        parts += [F.size(value), F.transform(value, lambda element: _shape(element, data_type.elementType))]
    return F.struct(*parts)
