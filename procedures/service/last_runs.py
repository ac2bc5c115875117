"""When the strategies and the maintenance of a table last ran, and which of them are due again."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from catalog.properties.lifecycle_properties import Pace


class LastRuns:
    """When each strategy or maintenance last ran, and the newest version of the table then."""

    def __init__(self) -> None:
        self._by_name: dict[str, tuple[int, int]] = {}

    def due(self, paces: Mapping[str, Pace | None], now: int, version: int) -> tuple[str, ...]:
        """Returns what may run: what has no pace, has not run yet, or whose pace is met.

        After the clock was set back, a last run may lie in the future; nobody knows how long ago it was.

        Args:
            paces: of strategies or of maintenance, by their names.
            now: epoch milliseconds.
            version: newest version of the table.
        """

        def is_due(name: str, pace: Pace | None) -> bool:
            last = self._by_name.get(name)
            return pace is None or last is None or now < last[0] or pace.is_met(now - last[0], version - last[1])

        return tuple(name for name, pace in paces.items() if is_due(name, pace))

    def record(self, names: Collection[str], started: int, version: int) -> None:
        """Records that strategies or maintenance have run to the end.

        Args:
            names: theirs.
            started: when they started, epoch milliseconds.
            version: newest version of the table at the end.
        """
        self._by_name |= dict.fromkeys(names, (started, version))
