"""Which files can have rows of a sample and of conditions: the answer of the planning, applied to tags of files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from otree.block import BAND_TAG, BLOCKS_TAG, REVISION_TAG, blocks_from_json
from otree.cube import CubeId
from otree.errors import IndexFormatError


@dataclass(frozen=True)
class _Box:
    first_weight: int
    last_weight: int
    lower: Sequence[float]
    upper: Sequence[float]

    def weighs(self, first: int, last: int) -> bool:
        return first <= self.last_weight and last >= self.first_weight

    def meets(self, cube: Sequence[tuple[float, float]]) -> bool:
        ends = zip(cube, self.lower, self.upper, strict=True)
        return all(start <= high and end >= low for (start, end), low, high in ends)


class IndexedFiles:
    """Says of files, by their tags, whether they can have rows that a read asks for."""

    def __init__(self, plan: str | None) -> None:
        """Reads the answer of the planning.

        Args:
            plan: result of ``catalog.pruning.read_planning.plan_read``; None if no file can be skipped.
        """
        self._boxes: dict[str, list[_Box]] = {}
        self._dimensions: dict[str, int] = {}
        for revision, query in (json.loads(plan)["revisions"] if plan is not None else {}).items():
            self._dimensions[revision] = query["dimensions"]
            self._boxes[revision] = [_Box(**box) for box in query["boxes"]]

    def may_have_rows(self, tags: Mapping[str, str]) -> bool:
        """Returns whether a file with these tags must be read; a tag that cannot be read may stand for any row."""
        boxes = self._boxes.get(tags.get(REVISION_TAG) or "")
        text = tags.get(BLOCKS_TAG)
        if boxes is None or text is None:
            return True
        try:
            blocks = blocks_from_json(text)
            cubes = [CubeId.parse(block.cube_id, self._dimensions[tags[REVISION_TAG]]) for block in blocks]
        except (IndexFormatError, ValueError):
            return True
        # The band is narrower than the blocks. It is used only if the first block begins inside it.
        band = _band(tags)
        if blocks and band is not None and blocks[0].element_count > 0 and band[0] <= blocks[0].min_weight <= band[1]:
            boxes = [box for box in boxes if box.weighs(*band)]
        return any(
            box.weighs(block.min_weight, block.max_weight) and box.meets(cube.box())
            for block, cube in zip(blocks, cubes, strict=True)
            for box in boxes
        )


def _band(tags: Mapping[str, str]) -> tuple[int, int] | None:
    """The first and last weight of a file's rows as the tag says; None where it says nothing."""
    try:
        first, end = (int(text) for text in tags.get(BAND_TAG, "").split(","))
    except ValueError:
        return None
    return (first, end - 1) if -(2**31) <= first < end <= 2**31 else None
