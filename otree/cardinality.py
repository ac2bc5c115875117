"""Whether rows have enough different weights to be sampled and split."""

from dataclasses import dataclass

# With fewer weights than this, a sample of a per mille is nothing, or more than it should be.
_FINE_ENOUGH = 1_000
# With fewer rows per weight than this, the weights stand for their rows.
_SHARED = 10


@dataclass(frozen=True)
class WeightCardinality:
    """Rows and their different weights.

    Rows of one weight are in one cube and in or out of a sample together, since the weight is the hash of the indexed
    columns.

    Attributes:
        rows: Number of rows.
        distinct_weights: Number of different weights among them, exact or estimated.
    """

    rows: int
    distinct_weights: int

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
