"""The score of a table's health: 100 points, less those that each part loses; pure."""

from __future__ import annotations

from dataclasses import dataclass

from procedures.insight.health.remedy import Advice

MOST_POINTS = 100


@dataclass(frozen=True)
class Scale:
    """The scale by which a value is judged.

    Attributes:
        unit: of the value, for people.
        fine: up to this value, no point is lost.
        worst: from this value on, all points of the part are lost; in between, in proportion.
        points: that the part can lose.
    """

    unit: str
    fine: float
    worst: float
    points: int

    def lost(self, value: float) -> float:
        """Returns the points that a value loses.

        Args:
            value: the value.
        """
        share = (value - self.fine) / (self.worst - self.fine)
        return round(self.points * min(max(share, 0.0), 1.0), 1)


SCALES = {
    "unindexed_share": Scale("share of bytes", 0.05, 0.5, 25),
    "fragmentation": Scale("share of blocks", 0.5, 0.95, 10),
    "overlap": Scale("files opened by a 1 % box, relative to a fresh index", 1.5, 6.0, 15),
    "sample_1_percent": Scale("bytes read, relative to a fresh index", 1.5, 10.0, 20),
    "sample_10_percent": Scale("bytes read, relative to a fresh index", 1.5, 5.0, 15),
    "box_1_percent": Scale("bytes read, relative to a fresh index", 1.5, 10.0, 20),
    "join_1_percent": Scale("bytes read, relative to a fresh index", 1.5, 10.0, 10),
    "small_files": Scale("files, relative to files of the desired size", 2.0, 20.0, 20),
    "deleted_rows": Scale("share of rows", 0.05, 0.3, 15),
    "log_length": Scale("commits after the last checkpoint", 50.0, 1000.0, 15),
    "failures": Scale("failed groups within 7 days", 0.0, 5.0, 15),
    "overfull_cubes": Scale("share of cubes", 0.01, 0.2, 10),
}
"""The parts of the score, in the order in which they are shown."""


@dataclass(frozen=True)
class Part:
    """A part of the score.

    Attributes:
        name: one of ``SCALES``.
        value: the measured value.
        cost_bytes: bytes that an average read reads beyond a fresh table because of it; None if that is not known.
        advice: the statement that improves it.
        counted: the value that the points follow from, if it is not ``value``: an incomplete first indexing loses no
            points.
    """

    name: str
    value: float
    cost_bytes: int | None
    advice: Advice
    counted: float | None = None

    @property
    def lost(self) -> float:
        """Points that it takes off."""
        return SCALES[self.name].lost(self.value if self.counted is None else self.counted)


def score_of(parts: list[Part]) -> int:
    """Returns the score, from 0 to 100.

    Args:
        parts: the measured parts; a part that does not apply is left out.
    """
    return max(0, round(MOST_POINTS - sum(part.lost for part in parts)))
