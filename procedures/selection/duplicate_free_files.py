"""Which files of a table hold no two rows of one key, as earlier comparisons of this process found."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
_MAX_TABLES = 64
_MAX_FILES = 4_000_000


class ComparedFiles:
    """Numbers of files per table and key. Any subset of such files holds no two rows of one key either.

    It forgets the tables that were not asked for the longest. Then all files of such a table are compared again.
    """

    def __init__(self) -> None:
        """Starts empty."""
        self._lock = threading.Lock()
        self._files: OrderedDict[Hashable, Numbers] = OrderedDict()

    def put(self, key: Hashable, numbers: Numbers) -> None:
        """Notes that the files of a table were compared with each other.

        Args:
            key: table, primary key and order.
            numbers: of the files.
        """
        with self._lock:
            self._files[key] = numbers
            self._files.move_to_end(key)
            while len(self._files) > _MAX_TABLES or sum(map(len, self._files.values())) > _MAX_FILES:
                self._files.popitem(last=False)

    def new_among(self, key: Hashable, numbers: Numbers) -> Numbers:
        """Returns the files that have to be compared: all but those that were compared with each other before.

        Args:
            key: table, primary key and order.
            numbers: of the files that the table has.
        """
        with self._lock:
            known = self._files.get(key)
            if known is None:
                return numbers
            self._files.move_to_end(key)
        return numbers[~np.isin(numbers, known)]
