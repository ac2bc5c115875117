"""Names of all commands with their one-line help, so that ``use-spark --help`` imports none of them."""

from __future__ import annotations

PROGRAM = "use-spark"

FIRST_STEPS = """\
use-spark diagnose PATH                    says how a table is and what to do first, without Spark
use-spark optimize --table PATH --dry-run  shows what an optimization would rewrite
use-spark doctor                           checks Java, Spark and the network of this machine
use-spark --help                           lists all commands"""
"""What to type first: the output without arguments."""

SECTIONS = {
    "Start": {
        "sql": "Runs SQL statements, including CALL use.…",
        "diagnose": "Says without Spark what an index would change for tables.",
        "doctor": "Checks the installation, or a table, and says how to fix problems.",
        "conf": "Prints the settings that spark-submit --properties-file needs.",
        "completion": "Prints a shell script that completes commands and options.",
    },
    "Look at a table": {
        "inspect": "Shows an overview of a table, or the rows of a view.",
        "health": "Scores the health of a table and says what mends it.",
        "status": "Shows runs, tables of the service, and leases.",
        "report": "Makes a page about a table, or about all tables.",
        "check": "Verifies the index.",
        "clustering-information": "Shows how well columns separate the files of a table.",
        "explain-skipping": "Shows which files a query skips, and why not more.",
        "approximate": "Answers an aggregate query from samples.",
        "quantiles": "Estimates the quantiles of a column.",
    },
    "Choose and set an index": {
        "recommend": "Measures which index columns save some queries the most bytes.",
        "index": "Sets the index properties of a table.",
        "drop-index": "Removes the index of a table.",
    },
    "Optimize": {
        "optimize": "Indexes unindexed files and merges fragmented cubes.",
        "plan": "Plans which files to rewrite together.",
        "compact": "Rewrites files without deleted rows, or with the latest rows only.",
        "consolidate-log": "Makes the logs of tables quick to load.",
        "fleet": "Ranks the tables that share a budget, and gives the best a turn.",
        "cancel": "Asks a run to stop at the next boundary between groups.",
    },
    "Delete": {
        "vacuum": "Deletes files that the table no longer references.",
        "purge": "Deletes history that is older than a limit.",
        "protect": "Keeps a version of a table readable.",
        "unprotect": "Ends the protection of a version.",
    },
    "Serve": {
        "service": "Optimizes tables whose properties turn on automatic optimization.",
        "dashboard": "Serves a page about the tables under automatic optimization.",
        "suspend": "Suspends automatic optimization of a table.",
        "resume": "Ends the suspension of a table.",
        "thrift": "Serves SQL to JDBC, ODBC and Spark Connect.",
    },
}
"""One-line help by name, by section of the help."""

FILES = {
    name: f"sql_ext.commands.{name}"
    for name in (
        "check",
        "completion",
        "conf",
        "dashboard",
        "diagnose",
        "doctor",
        "health",
        "inspect",
        "optimize",
        "recommend",
        "service",
        "sql",
        "thrift",
        "vacuum",
    )
}
"""Modules of the commands that have a file of their own; the others are made from the registry of procedures."""
