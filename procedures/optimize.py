"""``CALL use.optimize``: its parameters and result."""

from __future__ import annotations

from pyspark.sql import DataFrame

from catalog.table.managed_table import ManagedTable
from procedures.application import application
from procedures.declaration import Call, Parameter, Procedure
from procedures.optimizer.engine import optimize
from procedures.optimizer.optimize_settings import OptimizeSettings
from procedures.optimizer.runs import CALL, Run
from procedures.result_rows import OptimizeRow, data_frame_of, ddl_of


def _run(call: Call) -> DataFrame:
    settings = OptimizeSettings.of(call.arguments)
    table = ManagedTable.find(call.spark, call["table"])
    rows = optimize(table, settings, Run.of(table, CALL, settings.parameters, application().clock))
    return data_frame_of(call.spark, OptimizeRow, rows)


OPTIMIZE = Procedure(
    "optimize",
    "Indexes unindexed files and merges fragmented cubes of a table, group by group, each in one commit.",
    (
        Parameter("table", "STRING", "Table name, delta.`path` or path."),
        Parameter(
            "strategy",
            "STRING",
            "A strategy, or several separated by commas, asked in this order; UnindexedFiles, LeveledCompaction when "
            "left out.",
            None,
        ),
        Parameter(
            "revision_id",
            "BIGINT",
            "Revision to compact, or to rewrite: 0 for unindexed files only; the newest when left out.",
            None,
        ),
        Parameter(
            "bytes_per_iter",
            "BIGINT",
            "An iteration takes files until their bytes cross this, the crossing file included; 1000000000 when left "
            "out, and batch_bytes for the strategies that have this option.",
            None,
        ),
        Parameter("max_iterations", "INT", "Commits at most this many groups.", None),
        Parameter("max_bytes", "BIGINT", "Starts no further group once this many bytes were rewritten.", None),
        Parameter("max_duration", "STRING", "Starts no further group after this time, e.g. '10 minutes'.", None),
        Parameter("where", "STRING", "Only files that may hold rows of this predicate over the table's columns.", None),
        Parameter("files", "ARRAY<STRING>", "Only these files, by their paths as `index_files` shows them.", None),
        Parameter(
            "revision_rewrite",
            "BOOLEAN",
            "First index the files of revision_id, or of every older revision, again into the newest.",
            False,
        ),
        Parameter("parallelism", "INT", "Groups rewritten at the same time.", 1),
        Parameter("dry_run", "BOOLEAN", "Show the next groups and change nothing.", False),
        Parameter("options", "MAP<STRING,STRING>", "Options of the strategies, such as batch_bytes.", {}),
    ),
    ddl_of(OptimizeRow),
    _run,
)
