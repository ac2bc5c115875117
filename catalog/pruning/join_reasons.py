"""Why a scan skips no files by the keys of a join."""

from __future__ import annotations

from enum import Enum


class JoinReason(str, Enum):
    """Why the keys of a join skip no files of a scan."""

    NOT_EXECUTED = "NOT_EXECUTED"
    """The keys are known once the query runs, and it has not run."""
    SWITCHED_OFF = "SWITCHED_OFF"
    """``spark.qbeast.use.joins.enabled`` is false in the session."""
    ADAPTIVE_EXECUTION_OFF = "ADAPTIVE_EXECUTION_OFF"
    """``spark.sql.adaptive.enabled`` is false, so both sides of the join start at once."""
    SHUFFLED = "SHUFFLED"
    """Rows are shuffled between the scan and the join, and ``spark.qbeast.use.joins.job-share`` is 0."""
    JOB_TOO_LARGE = "JOB_TOO_LARGE"
    """Rows are shuffled, and a job that collects the keys would read too much for what they could save."""
    JOB_FAILED = "JOB_FAILED"
    """Rows are shuffled, and the job that collects the keys failed."""
    UNFILTERED_SIDE = "UNFILTERED_SIDE"
    """Rows are shuffled, and the other side has no filter, so no job collects its keys."""
    UNREPEATABLE_SIDE = "UNREPEATABLE_SIDE"
    """Rows are shuffled, and a second read of the other side could have other rows, so no job collects its keys."""
    SHARED_EXCHANGE = "SHARED_EXCHANGE"
    """Rows are shuffled, and Spark uses the shuffled rows of the scan several times."""
    UNMATCHED_ROWS_KEPT = "UNMATCHED_ROWS_KEPT"
    """The join keeps rows of the scan that have no match, as an outer join does."""
    OPERATOR_BETWEEN = "OPERATOR_BETWEEN"
    """Between the scan and the join is an operator that does not keep or drop single rows, such as a LIMIT."""
    NOT_A_COLUMN = "NOT_A_COLUMN"
    """The join compares an expression that is not a column of the table, nor one whose cast keeps the order."""
    UNSUPPORTED_TYPE = "UNSUPPORTED_TYPE"
    """Keys of this type have no order that the statistics of files share."""
    NAN_KEY = "NAN_KEY"
    """A key is NaN, which the statistics of files do not contain."""
    INVALID_STRING_KEY = "INVALID_STRING_KEY"
    """A key is a string that is not valid UTF-8 or contains U+10FFFF, which the statistics of files need not bound."""
    TOO_MANY_KEYS = "TOO_MANY_KEYS"
    """The other side has more keys than ``spark.qbeast.use.joins.keys``."""
    UNSELECTIVE_KEYS = "UNSELECTIVE_KEYS"
    """Every file may contain a key."""
    SMALL_SCAN = "SMALL_SCAN"
    """The scan has fewer bytes than ``spark.qbeast.use.joins.bytes``, so no job reads statistics or keys for it."""
    NOT_CONSIDERED = "NOT_CONSIDERED"
    """The rule did not look at the scan: a LIMIT selects its files, or the application is not attached."""


ADVICE = {
    JoinReason.NOT_EXECUTED: "The keys are known while the query runs.",
    JoinReason.SWITCHED_OFF: "Set spark.qbeast.use.joins.enabled to true.",
    JoinReason.ADAPTIVE_EXECUTION_OFF: (
        "Set spark.sql.adaptive.enabled to true, so that the keys are known before the scan starts."
    ),
    JoinReason.SHUFFLED: (
        "The scan starts before the keys are known. Broadcast the smaller side, with a hint or a higher "
        "spark.sql.autoBroadcastJoinThreshold, or set spark.qbeast.use.joins.job-share above 0."
    ),
    JoinReason.JOB_TOO_LARGE: (
        "Reading the keys first would cost more than they are likely to save: see spark.qbeast.use.joins.job-share. An "
        "index on these columns raises what keys can save."
    ),
    JoinReason.JOB_FAILED: "The log of the driver has the error.",
    JoinReason.UNFILTERED_SIDE: "Filter the other side, or broadcast it.",
    JoinReason.UNREPEATABLE_SIDE: (
        "A job reads the keys only of Delta tables and literals, without random values, limits, samples, subqueries "
        "and functions of users. Broadcast the smaller side instead."
    ),
    JoinReason.SHARED_EXCHANGE: "The rows are read once for several joins, so all of them are read.",
    JoinReason.UNMATCHED_ROWS_KEPT: "The join keeps rows without a match, so all of them are read.",
    JoinReason.OPERATOR_BETWEEN: "Join before the rows are aggregated, limited or sorted.",
    JoinReason.NOT_A_COLUMN: "Join on the column itself.",
    JoinReason.UNSUPPORTED_TYPE: "Join on a column of a number, date, timestamp or string without collation.",
    JoinReason.NAN_KEY: "Remove NaN from the keys of the other side.",
    JoinReason.INVALID_STRING_KEY: "Remove strings that are not valid UTF-8 from the keys of the other side.",
    JoinReason.TOO_MANY_KEYS: "Filter the other side, or raise spark.qbeast.use.joins.keys.",
    JoinReason.UNSELECTIVE_KEYS: "Every file may contain a key. An index on these columns separates them.",
    JoinReason.SMALL_SCAN: "A job that reads statistics or keys would cost more: see spark.qbeast.use.joins.bytes.",
    JoinReason.NOT_CONSIDERED: "The files were selected by a LIMIT.",
}
"""What would help, by reason."""
