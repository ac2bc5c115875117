"""Analyzed plans of queries as trees, and plans that are made out of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.classic.column import Column as ClassicColumn
from pyspark.sql.types import DataType, StructType

from catalog.jvm.java_values import JavaValue, data_frame, java_class, java_data, jvm_session

_CATALYST = "org.apache.spark.sql.catalyst"


def _items(sequence: JavaValue) -> list[JavaValue]:
    return [sequence.apply(position) for position in range(sequence.size())]


@dataclass(frozen=True, eq=False)
class ExpressionTree:
    """An expression of an analyzed plan.

    Attributes:
        java: the expression.
    """

    java: JavaValue

    @cached_property
    def kind(self) -> str:
        """Simple name of its class, such as ``Average``."""
        return str(self.java.getClass().getSimpleName())

    @cached_property
    def children(self) -> tuple[ExpressionTree, ...]:
        """Its operands."""
        return tuple(map(ExpressionTree, _items(self.java.children())))

    @cached_property
    def sql(self) -> str:
        """Its text."""
        return str(self.java.sql())

    @cached_property
    def type(self) -> str:
        """SQL type of its value."""
        return str(self.java.dataType().sql())

    @cached_property
    def data_type(self) -> DataType:
        """Type of its value. A cast to it does not depend on what the session means by TIMESTAMP."""
        field = {"name": "value", "type": json.loads(self.java.dataType().json()), "nullable": True, "metadata": {}}
        return StructType.fromJson({"type": "struct", "fields": [field]})["value"].dataType

    @cached_property
    def bytes(self) -> int:
        """Bytes that Spark expects of one value of its type."""
        return int(self.java.dataType().defaultSize())

    @property
    def is_deterministic(self) -> bool:
        """Whether it has the same value whenever it is evaluated over the same row."""
        return bool(self.java.deterministic())

    @cached_property
    def attribute_id(self) -> int | None:
        """Id of the attribute that it is or, for an alias, defines; None for other expressions."""
        return int(self.java.exprId().id()) if self.kind in ("Alias", "AttributeReference") else None

    @property
    def name(self) -> str:
        """Name of an attribute or alias."""
        return str(self.java.name())

    @cached_property
    def identity(self) -> str:
        """A text that two expressions share if they have the same value."""
        return str(self.java.canonicalized().toString())

    @property
    def constant(self) -> object:
        """Value of a literal: a number, boolean, text or None, or a JVM object."""
        return self.java.value()

    @property
    def attribute_ids(self) -> frozenset[int]:
        """Ids of the attributes in it."""
        own = self.attribute_id
        of_children = frozenset[int]().union(*(child.attribute_ids for child in self.children))
        return of_children | {own} if own is not None and self.kind == "AttributeReference" else of_children

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of all expressions in it."""
        return frozenset({self.kind}).union(*(child.kinds for child in self.children))

    def column(self, spark: SparkSession) -> Column:
        """Returns it as a column of a DataFrame that has its attributes."""
        java = java_class(spark, "org.apache.spark.sql.classic.ExpressionUtils").column(self.java)
        return ClassicColumn(java)

    # ----------------------------------------------------------- an InSubquery or another subquery

    @property
    def values(self) -> tuple[ExpressionTree, ...]:
        """What an InSubquery compares with the rows of its subquery."""
        return tuple(map(ExpressionTree, _items(self.java.values())))

    @property
    def query(self) -> PlanTree:
        """The plan of the subquery."""
        subquery = self.java.query() if self.kind == "InSubquery" else self.java
        return PlanTree(subquery.plan())

    # -------------------------------------------------------------------------- an AggregateExpression

    @property
    def aggregate(self) -> ExpressionTree:
        """The function of an aggregate."""
        return ExpressionTree(self.java.aggregateFunction())

    @property
    def is_distinct(self) -> bool:
        """Whether an aggregate takes each value once."""
        return bool(self.java.isDistinct())

    @property
    def condition(self) -> ExpressionTree | None:
        """The FILTER clause of an aggregate."""
        condition = self.java.filter()
        return ExpressionTree(condition.get()) if condition.isDefined() else None


@dataclass(frozen=True, eq=False)
class PlanTree:
    """A node of an analyzed plan.

    Attributes:
        java: the node.
    """

    java: JavaValue

    @cached_property
    def kind(self) -> str:
        """Simple name of its class, such as ``Aggregate``."""
        return str(self.java.getClass().getSimpleName())

    @cached_property
    def children(self) -> tuple[PlanTree, ...]:
        """The nodes below it."""
        return tuple(map(PlanTree, _items(self.java.children())))

    @cached_property
    def expressions(self) -> tuple[ExpressionTree, ...]:
        """Its expressions."""
        return tuple(map(ExpressionTree, _items(self.java.expressions())))

    @cached_property
    def output(self) -> tuple[ExpressionTree, ...]:
        """The attributes of its rows."""
        return tuple(map(ExpressionTree, _items(self.java.output())))

    @property
    def join_type(self) -> str:
        """How a join joins, such as ``LEFT OUTER``."""
        return str(self.java.joinType().sql())

    @property
    def keys(self) -> tuple[ExpressionTree, ...]:
        """Grouping expressions of an aggregate."""
        return tuple(map(ExpressionTree, _items(self.java.groupingExpressions())))

    @property
    def results(self) -> tuple[ExpressionTree, ...]:
        """What an aggregate or projection returns: attributes and aliases."""
        java = self.java.aggregateExpressions() if self.kind == "Aggregate" else self.java.projectList()
        return tuple(map(ExpressionTree, _items(java)))

    @property
    def subquery_plans(self) -> tuple[PlanTree, ...]:
        """Plans of the subqueries in its expressions."""
        return tuple(map(PlanTree, _items(self.java.subqueries())))

    def data(self, spark: SparkSession) -> DataFrame:
        """Returns its rows."""
        classic = java_class(spark, "org.apache.spark.sql.classic.Dataset")
        return data_frame(classic.ofRows(jvm_session(spark), self.java), spark)

    def with_children(self, spark: SparkSession, children: Sequence[PlanTree]) -> PlanTree:
        """Returns the same node over other nodes, whose attributes have the same ids."""
        return PlanTree(self.java.withNewChildren(_sequence(spark, [child.java for child in children])))


def analyzed_plan(data: DataFrame) -> PlanTree:
    """Returns the analyzed plan of a query, with its common table expressions and its present time put in."""
    spark = data.sparkSession
    plan = java_data(data).queryExecution().analyzed()
    plan = java_class(spark, f"{_CATALYST}.optimizer.InlineCTE")(True, False).apply(plan)
    return PlanTree(java_class(spark, f"{_CATALYST}.optimizer.ComputeCurrentTime").apply(plan))


def private_rows(data: DataFrame) -> DataFrame:
    """Returns the rows as a plan that equals no other one.

    Spark takes what is cached of a plan for all equal queries of the application: also for those of other users,
    and for those that would read later versions of the tables.
    """
    batch = java_class(data.sparkSession, "org.apache.spark.sql.delta.usespark.IndexedWrite").batch
    return data_frame(batch(java_data(data)), data.sparkSession)


def plan_with_names(data: DataFrame, attributes: Mapping[str, ExpressionTree]) -> PlanTree:
    """Returns a plan whose columns are known by other ids.

    Args:
        data: the rows.
        attributes: for some columns, the attribute by whose id and name the column shall be known. Other columns are
            added as they are.
    """
    spark = data.sparkSession
    plan = PlanTree(java_data(data).queryExecution().analyzed())
    alias = java_class(spark, f"{_CATALYST}.expressions.Alias")
    nothing = _sequence(spark, [])
    none = java_class(spark, "scala.Option").empty()
    columns = []
    for column in plan.output:
        attribute = attributes.get(column.name)
        if attribute is None:
            columns.append(column.java)
        else:
            java = attribute.java
            columns.append(alias(column.java, java.name(), java.exprId(), nothing, none, nothing))
    return _project(spark, columns, plan)


def projection_with(spark: SparkSession, projection: PlanTree, child: PlanTree, attribute: str) -> PlanTree:
    """Returns a projection over another child, with one more attribute of the child.

    Args:
        spark: session of the plan.
        projection: the projection.
        child: the node below.
        attribute: name of the attribute to add.
    """
    added = next(column.java for column in child.output if column.name == attribute)
    return _project(spark, [*(result.java for result in projection.results), added], child)


def _project(spark: SparkSession, columns: Sequence[JavaValue], child: PlanTree) -> PlanTree:
    project = java_class(spark, f"{_CATALYST}.plans.logical.Project")
    return PlanTree(project(_sequence(spark, columns), child.java))


def _sequence(spark: SparkSession, values: Sequence[JavaValue]) -> JavaValue:
    array = java_class(spark, "java.util.ArrayList")()
    for value in values:
        array.add(value)
    return java_class(spark, "org.apache.spark.api.python.PythonUtils").toSeq(array)


def sample_between(data: DataFrame, lower: float, upper: float) -> DataFrame:
    """Returns a sample that starts and ends at some fractions.

    Args:
        data: a query.
        lower: fraction, inclusive.
        upper: fraction, exclusive.
    """
    sample = java_data(data.sample(1.0, seed=0)).queryExecution().analyzed()
    # The last of the other parts, the method, is new in Spark 4.2.
    others = [sample.productElement(number) for number in range(2, sample.productArity())]
    return PlanTree(sample.copy(lower, upper, *others)).data(data.sparkSession)
