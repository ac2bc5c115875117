"""Explanations of which files a DataFrame skips and which conditions do not help."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from catalog.jvm.java_errors import as_one_line
from catalog.jvm.session import described_jobs
from catalog.jvm.skipping_report import plan_of_data
from catalog.settings.session_settings import PRUNING_ENABLED
from procedures.declare.result_rows import rows_as_html
from procedures.insight.skipping.explanation import ExplainSkippingRow, explanation_rows, explanation_text
from procedures.insight.skipping.table_steps import advice_rows
from sql_ext.remote_calls import refuse_client


@dataclass(frozen=True)
class SkippingExplanation:
    """Which files a query skips, and why it does not skip more.

    Attributes:
        rows: steps and reasons of each scan, as ``CALL use.explain_skipping`` shows them.
    """

    rows: tuple[ExplainSkippingRow, ...]

    @property
    def text(self) -> str:
        """The rows as text, a line each."""
        return explanation_text(self.rows)

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return rows_as_html(self.rows)


def explain(data: DataFrame) -> SkippingExplanation:
    """Plans a query without executing it, and explains which files it skips and which conditions do not help.

    Joins skip files by the keys of their other side. One query for each such side reads them.

    Args:
        data: a query of an attached session.

    Returns:
        The explanation; ``print`` shows its text.

    Raises:
        NotSupportedError: a query of a Spark Connect client; call ``use.explain_skipping`` there.
        UseError: Spark cannot plan the query.
    """
    spark = data.sparkSession
    refuse_client(spark, "explain")
    with described_jobs(spark, "USE explain_skipping"), as_one_line(spark):
        plan = plan_of_data(data)
    enabled = PRUNING_ENABLED.of_conf_or_default(spark.conf.get)
    return SkippingExplanation((*explanation_rows(plan, pruning_enabled=enabled), *advice_rows(spark, plan)))
