"""The advice about the tables of a query, in addition to the reasons why its conditions do not help."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import SparkSession

from catalog.errors import UseError
from catalog.jvm.skipping_report import SkippingPlan
from catalog.table.managed_table import ManagedTable
from procedures.insight.health.adviser import NOTHING_TO_DO
from procedures.insight.health.health import diagnosis_of
from procedures.insight.skipping.explanation import ExplainSkippingRow
from procedures.process.application import application

ITEM = "ADVICE"


def advice_rows(spark: SparkSession, plan: SkippingPlan) -> list[ExplainSkippingRow]:
    """Returns the steps for each table of a query, in order; reads only metadata.

    Args:
        spark: session of the query.
        plan: the query.
    """
    tables = dict.fromkeys(scan.counts["table"] for scan in plan.scans)
    return [row for name in tables for row in _rows(spark, name)]


def _rows(spark: SparkSession, name: str) -> Iterator[ExplainSkippingRow]:
    try:
        steps = diagnosis_of(ManagedTable.find(spark, name), application().clock).steps
    except UseError as error:
        # The explanation of the query is valid without advice, as for an earlier version or for very many files.
        yield ExplainSkippingRow(None, name, ITEM, None, None, None, error.message)
        return
    if not steps:
        yield ExplainSkippingRow(None, name, ITEM, None, None, None, NOTHING_TO_DO)
    for step in steps:
        message = f"{step.reason} {step.statement}"
        yield ExplainSkippingRow(None, name, ITEM, None, step.saved_bytes, step.advice.remedy.value, message)
