"""Blocks: which rows of a cube a file holds, as written in the file's tags."""

from collections.abc import Iterable
from dataclasses import dataclass

from otree import format_json
from otree.errors import IndexFormatError
from otree.format_json import INT_BOUNDS, LONG_BOUNDS

# The two tags of the published format.
REVISION_TAG = "revision"
BLOCKS_TAG = "blocks"
# Additional tags of USE, which readers of the format ignore.
WRITE_TAG = "use.write"
BAND_TAG = "use.band"
TIME_RANGE_TAG = "use.timeRange"
REWRITES_TAG = "use.rewrites"
TIER_TAG = "use.tier"

_FIELDS = frozenset({"cubeId", "minWeight", "maxWeight", "elementCount"})
_TOLERATED = frozenset({"replicated"})


@dataclass(frozen=True)
class Block:
    """The rows of one cube in one file.

    Attributes:
        cube_id: The cube's id as the format spells it; empty for the root.
        min_weight: Not above the smallest weight among the rows.
        max_weight: The cube's threshold when the file was written, inclusive; the largest weight for a leaf.
        element_count: Number of rows.

    Source:
        Index format, section 7 (tags).
    """

    cube_id: str
    min_weight: int
    max_weight: int
    element_count: int


def blocks_to_json(blocks: Iterable[Block]) -> str:
    """Write the text of the tag `blocks`: an array of objects with exactly the format's four fields."""
    return format_json.write(
        [
            {
                "cubeId": block.cube_id,
                "minWeight": block.min_weight,
                "maxWeight": block.max_weight,
                "elementCount": block.element_count,
            }
            for block in blocks
        ]
    )


def blocks_from_json(text: str) -> tuple[Block, ...]:
    """Read the text of the tag `blocks`.

    Args:
        text: JSON array of blocks; the field `replicated` of older tables is ignored.

    Returns:
        The blocks in the order of the text.

    Raises:
        IndexFormatError: If the text is not JSON, or a field is missing, unknown or of the wrong type.
    """
    nodes = format_json.as_array(format_json.parse(text, BLOCKS_TAG), BLOCKS_TAG)
    return tuple(_block_of(node) for node in nodes)


def _block_of(node: object) -> Block:
    fields = format_json.as_object(node, BLOCKS_TAG)
    for field in fields:
        if field not in _FIELDS and field not in _TOLERATED:
            raise IndexFormatError.of_field(field, fields[field], "only the fields " + ", ".join(sorted(_FIELDS)))
    return Block(
        cube_id=format_json.text_field(fields, "cubeId"),
        min_weight=format_json.whole_field(fields, "minWeight", INT_BOUNDS),
        max_weight=format_json.whole_field(fields, "maxWeight", INT_BOUNDS),
        element_count=format_json.whole_field(fields, "elementCount", (0, LONG_BOUNDS[1])),
    )
