"""``CALL use.explain_skipping``: which files a query skips, and which conditions do not help."""

from __future__ import annotations

from pyspark.sql import DataFrame

from catalog.jvm.session import described_jobs
from catalog.settings.session_settings import PRUNING_ENABLED
from procedures.declare.declaration import Call, Parameter, Procedure
from procedures.declare.result_rows import ExplainSkippingRow, data_frame_of, ddl_of
from procedures.insight.skipping.explanation import explanation_rows
from procedures.insight.skipping.queries import QUERY, planned_query
from procedures.insight.skipping.table_steps import advice_rows


def _run(call: Call) -> DataFrame:
    with described_jobs(call.spark, "USE explain_skipping"):
        plan = planned_query(call.spark, call["query"])
    rows = explanation_rows(plan, pruning_enabled=PRUNING_ENABLED.of_conf_or_default(call.spark.conf.get))
    rows += advice_rows(call.spark, plan)
    return data_frame_of(call.spark, ExplainSkippingRow, rows)


EXPLAIN_SKIPPING = Procedure(
    "explain_skipping",
    "Plans a query without executing it, and shows which files it skips and which conditions do not help.",
    (Parameter("query", "STRING", "One query. Commands are refused.", not_blank=QUERY),),
    ddl_of(ExplainSkippingRow),
    _run,
)
