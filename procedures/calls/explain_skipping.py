"""``CALL use.explain_skipping``: which files a query skips, and which conditions do not help."""

from __future__ import annotations

from typing import Annotated

from catalog.jvm.session import described_jobs
from catalog.settings.session_settings import PRUNING_ENABLED
from procedures.declare.declaration import Call
from procedures.declare.operation import Constraint, operation
from procedures.insight.skipping.explanation import ExplainSkippingRow, explanation_rows
from procedures.insight.skipping.queries import QUERY, planned_query
from procedures.insight.skipping.table_steps import advice_rows


def explain_skipping(call: Call, query: Annotated[str, Constraint(not_blank=QUERY)]) -> list[ExplainSkippingRow]:
    """Plans a query, and shows which files it skips and which conditions do not help. It reads the keys of joins.

    Args:
        query: One query. Commands are refused.
    """
    with described_jobs(call.spark, "USE explain_skipping"):
        plan = planned_query(call.spark, query)
    rows = explanation_rows(plan, pruning_enabled=PRUNING_ENABLED.of_conf_or_default(call.spark.conf.get))
    rows += advice_rows(call.spark, plan)
    return rows


EXPLAIN_SKIPPING = operation(explain_skipping)
