"""The options of strategies that are table properties as well, each declared once.

A strategy takes an option by its name (``procedures.declare.option``). The property is a prefix and the same name in
camelCase (``catalog.properties.option_properties``). A strategy declares its other options itself.
"""

from __future__ import annotations

from typing import Any

from catalog.settings.setting import ABOVE_ZERO, BOOLEAN, RATIO, SIZE, TEXT, Setting, duration, whole_number

MOST_FILES_WITH_BOXES = 100
"""Files of a step of consolidation, at most, if boxes are compared: the cost of a step grows with this number."""
DEFAULT_BYTES_PER_ITER = 1_000_000_000
"""Bytes of an iteration of strategies without ``batch_bytes``."""
DEFAULT_FILE_BYTES = 1024**3
"""Bytes of a file that consolidation writes, at most."""

POSITIVE_DURATION = duration("a positive duration such as '10 minutes' or '1 hour'", spark_syntax=False)
QUIET_DURATION = duration("a duration such as '10 minutes', or 0", spark_syntax=False, least=0)
_FROM_TWO = whole_number(2, sql_type="INT")

# UnindexedFiles and RevisionRewrite.
BATCH_BYTES = Setting("batch_bytes", whole_number(1), "Bytes of files taken in an iteration.", "10000000000")
FROM_TIMESTAMP = Setting(
    "from_timestamp",
    TEXT,
    "Files modified before it are left alone: epoch milliseconds, or 'yyyy-MM-dd HH:mm:ss' in the session's time zone "
    "unless one follows.",
    "0",
)

# SizeTieredClustering.
MIN_FILES = Setting("min_files", _FROM_TWO, "Least number of files of a tier that are merged.", "4")
MIN_BYTES = Setting("min_bytes", SIZE, "A tier with so many bytes is merged with fewer files, too.")
TIER_RATIO = Setting(
    "tier_ratio",
    _FROM_TWO,
    "How many times larger the files of a tier are than those of the tier below; min_files if that is smaller.",
    "4",
)
ISOLATE_BYTES = Setting("isolate_bytes", SIZE, "Files of at least this size are not merged.", "128MB")
MAX_TIME_RANGE = Setting(
    "max_time_range",
    POSITIVE_DURATION,
    "Time between the first and the last write of a merged file's rows, at most.",
)
CLUSTERING_OPTIONS: tuple[Setting[Any], ...] = (MIN_FILES, MIN_BYTES, TIER_RATIO, ISOLATE_BYTES, MAX_TIME_RANGE)

# DeleteCompaction.
MIN_DELETED_RATIO = Setting(
    "min_deleted_ratio",
    RATIO,
    "Files are rewritten when deletion vectors hide more than this share of their rows.",
    "0.05",
)

# LatestRowCompaction.
PRIMARY_KEY = Setting(
    "primary_key",
    TEXT,
    "Compaction keeps only the latest row of each key: columns that together name a row, separated by commas.",
)
ORDER_BY = Setting(
    "order_by", TEXT, "Column whose greatest value is that of the latest row of a key; it must have no nulls."
)

# StepConsolidation.
STEPS = Setting(
    "steps", whole_number(1, sql_type="INT"), "Steps in each partition and band, at most.", unset="unlimited"
)
STEP_MIN_FILES = Setting("step_min_files", _FROM_TWO, "Files that a step takes, at least.", "2")
STEP_MAX_FILES = Setting("step_max_files", _FROM_TWO, "Files that a step takes, at most.", unset="unlimited")
STEP_SIZE_RATIO = Setting(
    "step_size_ratio", RATIO, "Size of a file in proportion to that of a larger neighbour, at least.", "0.0"
)
AMPLIFICATION = Setting(
    "amplification",
    ABOVE_ZERO,
    "Volume of the box around the files of a step, at most, in multiples of the sum of their volumes; a step takes at "
    f"most {MOST_FILES_WITH_BOXES} files then.",
    unset="unlimited",
)
PURGE_DELETED = Setting(
    "purge_deleted", BOOLEAN, "Whether to take files with deletion vectors, without deleted rows.", "true"
)
MAX_FILE_BYTES = Setting(
    "max_file_bytes",
    whole_number(1),
    f"Bytes of a merged file, at most; {DEFAULT_FILE_BYTES} by default. If it is set, a file of more than 1.5 times as "
    "many bytes is divided.",
    unset=str(DEFAULT_FILE_BYTES),
)
BOX_COLUMNS = Setting(
    "columns",
    TEXT,
    "Columns of the boxes, separated by commas; the indexed ones by default. Only with amplification or files.",
    unset="the indexed columns",
)
STEP_OPTIONS: tuple[Setting[Any], ...] = (
    STEPS,
    STEP_MIN_FILES,
    STEP_MAX_FILES,
    STEP_SIZE_RATIO,
    AMPLIFICATION,
    PURGE_DELETED,
    MAX_FILE_BYTES,
    BOX_COLUMNS,
)
