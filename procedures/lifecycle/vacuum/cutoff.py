"""How much of a table's history stays, as exact limits of one vacuum."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.properties.retention_properties import MOST_HOURS

_MILLIS_PER_HOUR = 3_600_000


@dataclass(frozen=True)
class Cutoff:
    """The limits of the files that a vacuum may delete.

    Attributes:
        delete_before: epoch milliseconds; files that are newer, or were removed later, stay.
        unreferenced_before: epoch milliseconds; files that no commit names stay if they are newer, because a writer
            may be about to commit them.
        now: epoch milliseconds.
        version: the files of this version and of later ones stay; None = the newest version at ``delete_before``.
    """

    delete_before: int
    unreferenced_before: int
    now: int
    version: int | None = None

    @classmethod
    def of_retention(cls, hours: float, now: int, floor_hours: float = 0.0) -> Cutoff:
        """Keeps history for a time.

        Args:
            hours: the time.
            now: epoch milliseconds.
            floor_hours: files that no commit names stay for this time, even if the retention is shorter.
        """
        before = _before(hours, now)
        return cls(before, min(before, _before(floor_hours, now)), now)

    @classmethod
    def of_version(cls, version: int, now: int, floor_hours: float) -> Cutoff:
        """Keeps a version and all later ones.

        Args:
            version: the version.
            now: epoch milliseconds.
            floor_hours: files that no commit names stay for this time.
        """
        return cls(now, _before(floor_hours, now), now, version)

    @property
    def retention_hours(self) -> int:
        """The retention for Delta's history, in whole hours."""
        return min(-((self.delete_before - self.now) // _MILLIS_PER_HOUR), MOST_HOURS)


def _before(hours: float, now: int) -> int:
    return max(0, now - round(min(hours, MOST_HOURS) * _MILLIS_PER_HOUR))
