"""The paths of files in the log and in scans, normalized so that they can be compared."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F


def full_path(log_path: Column, root: str) -> Column:
    """Returns the path of a file in the log as file systems write it: absolute, decoded, one slash after the scheme.

    Args:
        log_path: as in the log: relative to the table or absolute, percent-encoded.
        root: the table's location, not encoded.
    """
    is_absolute = log_path.rlike("^([a-zA-Z][a-zA-Z0-9+.-]*:|/)")
    decoded = _decoded(log_path)
    return one_spelling(F.when(is_absolute, decoded).otherwise(F.concat(F.lit(root.rstrip("/") + "/"), decoded)))


def scanned_path() -> Column:
    """Returns the same path for each row of a scan, from the scan's metadata."""
    return one_spelling(_decoded(F.col("_metadata.file_path")))


def one_spelling(path: Column) -> Column:
    """Normalizes a path: ``file:///a`` becomes ``file:/a``."""
    return F.regexp_replace(path, "^([a-zA-Z][a-zA-Z0-9+.-]*):/+", "$1:/")


def _decoded(path: Column) -> Column:
    # url_decode turns a plus into a space, but in a path it is a literal plus.
    return F.url_decode(F.replace(path, F.lit("+"), F.lit("%2B")))
