"""The Spark confs of ours that a session reads."""

from __future__ import annotations

from catalog.settings.setting import AT_LEAST_ZERO, BOOLEAN, SIZE, Setting, choice, whole_number

SAMPLING_ENABLED = Setting(
    "spark.qbeast.use.sampling.enabled", BOOLEAN, "Samples read only the files that they need.", "true"
)
PRUNING_ENABLED = Setting(
    "spark.qbeast.use.pruning.enabled", BOOLEAN, "The index selects files, besides Delta's statistics.", "true"
)
PROGRESS = Setting(
    "spark.qbeast.use.progress",
    choice(("true", "false", "auto"), "true, false or auto", any_case=True),
    "Whether a progress bar is drawn on standard error; auto: in terminals and notebooks.",
    "auto",
)
RECORDING_ENABLED = Setting(
    "spark.qbeast.use.insights.recording",
    BOOLEAN,
    "Queries are recorded in the `consumption` of tables that ask for it.",
    "true",
)
LITERALS_RECORDED = Setting(
    "spark.qbeast.use.insights.literals", BOOLEAN, "Records of queries contain the literals of filters.", "false"
)
STATEMENTS_ENABLED = Setting(
    "spark.qbeast.use.statements.enabled",
    BOOLEAN,
    "Statements keep the layout of the rows that they rewrite, and run again when a rewrite took their files.",
    "true",
)
JOINS_ENABLED = Setting(
    "spark.qbeast.use.joins.enabled",
    BOOLEAN,
    "Scans skip files without rows that match the other side of a join.",
    "true",
)
JOINS_KEYS = Setting(
    "spark.qbeast.use.joins.keys",
    whole_number(1, most=1_000_000_000),
    "Keys of the other side of a join; with more, they skip no files.",
    "50000",
)
JOINS_BYTES = Setting(
    "spark.qbeast.use.joins.bytes",
    SIZE,
    "A job reads statistics or keys for a join if the scan has at least this many bytes.",
    "256MB",
)
JOINS_JOB_SHARE = Setting(
    "spark.qbeast.use.joins.job-share",
    AT_LEAST_ZERO,
    "Bytes that a job may read for the keys of a shuffled side, as a share of those that they could save; 0: never.",
    "0.02",
)
MERGES_BYTES = Setting(
    "spark.qbeast.use.merges.bytes",
    SIZE,
    "A job reads the keys of the source of a MERGE if the target has at least this many bytes.",
    "16MB",
)
APPROXIMATE_BYTES = Setting(
    "spark.qbeast.use.approximate.bytes",
    SIZE,
    "`use.approximate` reads samples if the columns of the exact answer have at least this many bytes for each core.",
    "128MB",
)
SESSION_SETTINGS = (
    SAMPLING_ENABLED,
    PRUNING_ENABLED,
    PROGRESS,
    RECORDING_ENABLED,
    LITERALS_RECORDED,
    STATEMENTS_ENABLED,
    JOINS_ENABLED,
    JOINS_KEYS,
    JOINS_BYTES,
    JOINS_JOB_SHARE,
    MERGES_BYTES,
    APPROXIMATE_BYTES,
)
