"""Whether rows have enough different weights, and weights of all kinds, to be sampled and split."""

from dataclasses import dataclass

from otree.weight import MAX_WEIGHT, MIN_WEIGHT

WEIGHT_PARTS = 64
"""Parts of the range of weights that are looked at, all of the same length."""
# If weights are random, one of 64 parts of this many weights each is empty once in 10^12 tables.
_WEIGHTS_OF_A_PART = 32
# With fewer weights than this, a sample of a per mille is nothing, or more than it should be.
_FINE_ENOUGH = 1_000
# With fewer rows per weight than this, the weights stand for their rows.
_SHARED = 10


def has_gaps(parts: int, distinct_weights: int, lowest: int, highest: int) -> bool:
    """Say whether there are parts of the range of weights from which random weights would not all be missing.

    With few weights, longer parts are looked at. The parts of a split lack weights at an end, which may be shorter.

    Args:
        parts: A bit for each of the ``WEIGHT_PARTS`` parts that has a weight, the lowest one for the lowest weights.
        distinct_weights: Number of different weights, exact or estimated.
        lowest: The lowest weight.
        highest: The highest weight.
    """
    end = max(lowest - MIN_WEIGHT, MAX_WEIGHT - highest) / (MAX_WEIGHT - MIN_WEIGHT)
    if end * distinct_weights >= _WEIGHTS_OF_A_PART:
        return True
    length = WEIGHT_PARTS
    while length > 1 and distinct_weights * length >= 2 * WEIGHT_PARTS * _WEIGHTS_OF_A_PART:
        length //= 2
    return distinct_weights > 0 and any(
        not parts >> first & (1 << length) - 1 for first in range(0, WEIGHT_PARTS, length)
    )


@dataclass(frozen=True)
class WeightCardinality:
    """Rows and their different weights.

    Rows of one weight are in one cube and in or out of a sample together, since the weight is the hash of the indexed
    columns.

    Attributes:
        rows: Number of rows.
        distinct_weights: Number of different weights among them, exact or estimated.
        has_gaps: Whether weights of some parts of their range are missing, as in a sample that was stored as a table.
            Samples and splits by weight of such rows have any size.
    """

    rows: int
    distinct_weights: int
    has_gaps: bool = False

    def is_low(self, desired_cube_size: int) -> bool:
        """Say whether samples are coarse, or cubes must exceed their size, because rows share weights.

        Args:
            desired_cube_size: Rows that an inner cube should hold.
        """
        if self.rows == 0 or self.distinct_weights * _SHARED > self.rows:
            return False
        return self.distinct_weights < _FINE_ENOUGH or self.rows > self.distinct_weights * desired_cube_size

    @property
    def message(self) -> str:
        """One sentence for the owner of the table."""
        return (
            f"low cardinality: about {self.distinct_weights} distinct weights for {self.rows} rows; samples are coarse"
        )
