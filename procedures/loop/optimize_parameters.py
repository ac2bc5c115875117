"""The parameters of ``use.optimize``: types, defaults and documentation."""

from __future__ import annotations

from catalog.settings.strategy_options import DEFAULT_BYTES_PER_ITER
from procedures.declare.declaration import Parameter, details_parameter

SHOW_DETAILS = details_parameter("iteration", "input_bytes", "output_bytes", "duration_ms", default=True)

OPTIMIZE_PARAMETERS = (
    Parameter("table", "STRING", "Table name, delta.`path` or path."),
    Parameter(
        "strategy",
        "STRING",
        "One or more strategies, separated by commas, in order of priority; UnindexedFiles, LeveledCompaction, "
        "SortedRunCompaction by default.",
        None,
    ),
    Parameter(
        "revision_id",
        "BIGINT",
        "Revision to compact or to rewrite; 0 for unindexed files only. The newest by default.",
        None,
    ),
    Parameter(
        "bytes_per_iter",
        "BIGINT",
        "An iteration takes files until their total size exceeds this number of bytes, including the last file; "
        f"{DEFAULT_BYTES_PER_ITER} by default, and batch_bytes for the strategies that have this option.",
        None,
    ),
    Parameter("max_iterations", "INT", "Maximum number of groups to commit.", None),
    Parameter("max_bytes", "BIGINT", "Starts no further group after this many bytes were rewritten.", None),
    Parameter("max_duration", "STRING", "Starts no further group after this time, for example '10 minutes'.", None),
    Parameter("where", "STRING", "Rewrites only files that may contain rows that match this predicate.", None),
    Parameter(
        "files",
        "ARRAY<STRING>",
        "Rewrites only these files, with paths as in `index_files`.",
        None,
        not_blank="paths of files",
    ),
    Parameter(
        "revision_rewrite",
        "BOOLEAN",
        "First indexes the files of revision_id, or of every older revision, again in the newest revision.",
        False,
    ),
    Parameter("parallelism", "INT", "Groups rewritten at the same time.", 1),
    Parameter("dry_run", "BOOLEAN", "Shows the next groups and changes nothing.", False),
    Parameter("options", "MAP<STRING,STRING>", "Options of the strategies, such as batch_bytes.", {}),
    Parameter(
        "plan",
        "STRING",
        "Rewrites groups of this stored plan, which use.plan has made, in place of what strategies choose.",
        None,
    ),
    Parameter("groups", "ARRAY<BIGINT>", "With plan: only these groups; all unfinished ones by default.", None),
    SHOW_DETAILS,
)

DEFAULT_ARGUMENTS = {p.name: None if p.required else p.default for p in OPTIMIZE_PARAMETERS}
"""The arguments of a call that names none."""
