"""Rows of a page: the smallest part of a file that a filter on a range of values reads.

Pages hold a number of rows, or a multiple of it in columns without an index whose values take so few bits that the page
would be mostly header. The shim measures that for each column while it writes a file.
"""

import numpy as np
from numpy.typing import NDArray

# Rows of a page where a revision is laid out at once.
PAGE_ROWS = 2_000
# A page of fewer rows than the most has at least this many bytes. Its header and its other fixed parts have about 40.
LEAST_PAGE_BYTES = 1_500
MOST_PAGE_ROWS = 20_000
# Pages of a small write have at least this share of those rows; smaller ones would cost more in headers than they save.
_SMALLEST_SHARE = 0.5


def page_rows_of(
    rows: NDArray[np.float64] | float, revision_rows: float, page_rows: int = PAGE_ROWS
) -> NDArray[np.float64]:
    """Return how many rows the pages of a write should have: fewer where the write is a small part of its revision.

    A box reads a page or more of each sorted run that it overlaps, however short the run is. If pages shrink with the
    root of the run's share, many short runs cost about as much as one long run.

    Args:
        rows: Rows of the write, or of several.
        revision_rows: Rows of the revision, those of the write among them.
        page_rows: Rows of a page where the whole revision is written.

    Returns:
        One number per write, at least 1.
    """
    share = np.sqrt(np.asarray(rows, np.float64) / max(revision_rows, 1.0))
    return np.asarray(np.maximum(page_rows * np.clip(share, _SMALLEST_SHARE, 1.0), 1.0))
