"""What the optimizer's rules made of the conditions of a query, scan by scan, read from its optimized plan."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from catalog.jvm.java_values import JavaValue, data_frame, java_class, java_data, jvm_session
from catalog.jvm.read_report import PlannedSample
from catalog.predicates.index_conditions import IndexCondition, condition_of_json

_REPORT = "io.usespark.SkippingReport"
_LONGEST_TEXT = 200


@dataclass(frozen=True)
class PlannedCondition:
    """A condition of a scan, as Spark's optimizer left it.

    Attributes:
        text: SQL text.
        operator: ``and`` or ``or``; '' for a single condition.
        parts: operands of ``and`` and ``or``.
        tree: the condition as the index judges it; None if it does not judge it.
        used_by: ``partitions`` or ``statistics`` if Delta used it to select files, else ''.
        is_partition: whether it is about partition columns only.
        subject: what is compared: ``column``, ``cast``, ``function``, ``hash`` or ``other``.
        comparison: ``=``, ``<``, ``IN``, ``IS NULL``, ``LIKE`` and so on; '' if nothing is compared with a constant.
        constants: SQL texts of the first ten constants.
        columns: names of the top-level columns.
        column: stored name of the column that is compared or cast; '' for other subjects.
        path: stored names of the column that is compared and of the structs around it, from the outermost.
        type: SQL type of the column.
        cast_type: SQL type to which it is cast.
        function: outermost function of the subject.
        arguments: SQL texts of its arguments.
    """

    text: str
    operator: str = ""
    parts: tuple[PlannedCondition, ...] = ()
    tree: IndexCondition | None = None
    used_by: str = ""
    is_partition: bool = False
    subject: str = "other"
    comparison: str = ""
    constants: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    column: str = ""
    path: tuple[str, ...] = ()
    type: str = ""
    cast_type: str = ""
    function: str = ""
    arguments: tuple[str, ...] = ()

    @classmethod
    def of(cls, node: Mapping[str, Any]) -> PlannedCondition:
        """Returns the condition of a node of the shim's report."""
        return cls(
            text=_shown(node["text"]),
            operator=node["operator"],
            parts=tuple(cls.of(part) for part in node.get("of", ())),
            tree=None if node.get("tree") is None else condition_of_json(node["tree"]),
            used_by=node.get("used_by", ""),
            is_partition=node.get("is_partition", False),
            subject=node.get("subject", "other"),
            comparison=node.get("comparison", ""),
            constants=tuple(node.get("constants", ())),
            columns=tuple(node.get("columns", ())),
            column=node.get("column", ""),
            path=tuple(node.get("path", ())),
            type=node.get("type", ""),
            cast_type=node.get("as", ""),
            function=node.get("function", ""),
            arguments=tuple(_shown(argument) for argument in node.get("arguments", ())),
        )

    @property
    def leaves(self) -> Iterator[PlannedCondition]:
        """The single conditions that it is made of."""
        if not self.operator:
            yield self
        for part in self.parts:
            yield from part.leaves


@dataclass(frozen=True)
class RevisionFiles:
    """Files of one revision that a scan reads.

    Attributes:
        revision: the tag of the files; '' for unindexed ones.
        files: number of files.
        bytes: their bytes.
    """

    revision: str
    files: int
    bytes: int


@dataclass(frozen=True)
class SkippingScan:
    """A Delta scan of a query.

    Attributes:
        counts: table, version, and files and bytes left after each step, by name.
        configuration: table properties, as JSON.
        schema: logical schema of the table.
        read: files that it reads, by revision.
        conditions: conditions of its filters.
        files_without_statistics: see ``without_statistics``.
    """

    counts: Mapping[str, Any]
    configuration: str
    schema: StructType
    read: tuple[RevisionFiles, ...]
    conditions: tuple[PlannedCondition, ...]
    files_without_statistics: Callable[[], Mapping[str, int]]

    @cached_property
    def without_statistics(self) -> Mapping[str, int]:
        """For each column that a condition compares, the number of files without a minimum although they have values.

        The keys are stored names. The first access can run a Spark job over the list of files.
        """
        return self.files_without_statistics()


@dataclass(frozen=True)
class SkippingPlan:
    """The Delta scans of a query and the samples that Spark takes itself."""

    scans: tuple[SkippingScan, ...]
    samples: tuple[PlannedSample, ...]


def command_in(spark: SparkSession, text: str) -> str | None:
    """Returns the name of the command that a text is; None if it is a query. Nothing is executed.

    Args:
        spark: session of the caller.
        text: one SQL statement.
    """
    command = java_class(spark, _REPORT).command(jvm_session(spark), text)
    return None if command is None else str(command)


def plan_of_query(spark: SparkSession, text: str) -> SkippingPlan:
    """Plans a query without executing it.

    Args:
        spark: session of the caller.
        text: a query; a command fails to parse.
    """
    return _plan(spark, java_class(spark, _REPORT).ofQuery(jvm_session(spark), text))


def plan_of_data(data: DataFrame) -> SkippingPlan:
    """Plans a DataFrame without executing it."""
    return _plan(data.sparkSession, java_class(data.sparkSession, _REPORT).of(java_data(data)))


def _plan(spark: SparkSession, shim_report: JavaValue) -> SkippingPlan:
    report = json.loads(shim_report.json())
    return SkippingPlan(
        tuple(_scan(scan, partial(_files, spark, shim_report, i)) for i, scan in enumerate(report["scans"])),
        tuple(PlannedSample(**sample) for sample in report["samples"]),
    )


def _files(spark: SparkSession, shim_report: JavaValue, scan: int) -> DataFrame:
    return data_frame(shim_report.files(scan), spark)


def _scan(scan: Mapping[str, Any], files: Callable[[], DataFrame]) -> SkippingScan:
    conditions = tuple(PlannedCondition.of(node) for node in scan["conditions"])
    return SkippingScan(
        counts=scan["counts"],
        configuration=scan["configuration"],
        schema=StructType.fromJson(json.loads(scan["schema"])),
        read=tuple(RevisionFiles(**files) for files in scan["revisions"]),
        conditions=conditions,
        files_without_statistics=partial(
            _without_statistics, files, [leaf for each in conditions for leaf in each.leaves]
        ),
    )


def _without_statistics(files: Callable[[], DataFrame], leaves: Iterable[PlannedCondition]) -> Mapping[str, int]:
    """Counts, for each column, the files without a minimum that hold a value; one Spark job over the list of files."""
    paths = {leaf.column: leaf.path for leaf in leaves if leaf.path and not leaf.is_partition}
    if not paths:
        return {}
    (row,) = files().select(*(F.count_if(_lacks_minimum(path)) for path in paths.values())).collect()
    return dict(zip(paths, row, strict=True))


def _lacks_minimum(path: tuple[str, ...]) -> Column:
    quoted = "".join(f"['{name}']" for name in (name.replace("'", "\\'") for name in path))
    minimum, nulls, rows = (
        F.get_json_object("stats", f"$.{kind}") for kind in (f"minValues{quoted}", f"nullCount{quoted}", "numRecords")
    )
    return minimum.isNull() & ~F.coalesce(nulls == rows, F.lit(False))


def _shown(sql: str) -> str:
    """Returns the SQL of an expression without the parentheses around all of it, shortened."""
    # Parentheses in quotes may make it unclear whether the first one is closed by the last character.
    depths = list(accumulate((c == "(") - (c == ")") for c in sql))
    if sql.startswith("(") and depths[-1] == 0 and 0 not in depths[:-1]:
        sql = sql[1:-1]
    return sql if len(sql) <= _LONGEST_TEXT else sql[:_LONGEST_TEXT] + "…"
