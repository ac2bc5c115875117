"""Packing: which data file each row of each cube goes to."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from otree.cube import CubeId
from otree.tree import Tree
from otree.weight import MAX_WEIGHT, MIN_WEIGHT, WeightRange, weight_of

_WEIGHTS = MAX_WEIGHT - MIN_WEIGHT + 1
# A file may be this many targets large before it is worth two files.
_LARGEST_FILE = 1.5
_SMALLEST_BAND = 0.5
# A file of several pieces never exceeds this many targets, even if the band then has a file more.
_FULL_FILE = 1.75


@dataclass(frozen=True)
class Piece:
    """Rows of a cube from a weight up to the cube's next piece.

    Attributes:
        cube: The cube.
        first_weight: Smallest weight, inclusive.
        file: Number of the file they go to.
    """

    cube: CubeId
    first_weight: int
    file: int


@dataclass(frozen=True)
class Packing:
    """Where the rows go.

    Attributes:
        pieces: Sorted by cube (pre-order) and first weight; each cube's first piece starts at MIN_WEIGHT.
        files: Number of files; they are numbered 0 to files - 1, lowest weights first, then along the curve.
    """

    pieces: tuple[Piece, ...]
    files: int

    @cached_property
    def _cuts(self) -> dict[CubeId, tuple[list[int], list[int]]]:
        cuts: dict[CubeId, tuple[list[int], list[int]]] = {}
        for piece in self.pieces:
            firsts, files = cuts.setdefault(piece.cube, ([], []))
            firsts.append(piece.first_weight)
            files.append(piece.file)
        return cuts

    def file_of(self, cube: CubeId, weight: int) -> int:
        """Return the file of a row.

        Args:
            cube: The cube the row goes to.
            weight: The row's weight.

        Returns:
            Number of the file.

        Raises:
            KeyError: If the cube was not counted.
        """
        if cube not in self._cuts:
            raise KeyError(f"Cube '{cube.text}' is not in the packing")
        firsts, files = self._cuts[cube]
        return files[bisect_right(firsts, weight) - 1]


@dataclass(frozen=True)
class _Spread:
    """Rows of a cube, spread evenly over its weights."""

    cube: CubeId
    weights: WeightRange
    rows: float

    def below(self, weight: int) -> float:
        """Return the rows expected below a weight."""
        size = self.weights.last - self.weights.first + 1
        return self.rows * min(max(weight - self.weights.first, 0), size) / size

    def within(self, first: int, end: int) -> "_Spread | None":
        """Return the part from a weight to another (exclusive), None when there is none."""
        part = WeightRange(max(first, self.weights.first), min(end - 1, self.weights.last))
        if part.first > part.last:
            return None
        return _Spread(self.cube, part, self.below(end) - self.below(first))

    def cut(self, target_rows: int) -> "Iterator[_Spread]":
        """Yield the spread itself, or equal parts of about the target when it is too large for one file."""
        size = self.weights.last - self.weights.first + 1
        parts = 1
        if self.rows > _LARGEST_FILE * target_rows:
            parts = min(max(2, round(self.rows / target_rows)), size)
        for part in range(parts):
            first = self.weights.first + size * part // parts
            last = self.weights.first + size * (part + 1) // parts - 1
            yield _Spread(self.cube, WeightRange(first, last), self.rows / parts)


def pack(counts: Mapping[CubeId, int], tree: Tree, target_rows: int, band_ratio: float = 2.0) -> Packing:
    """Lay rows out in files: bands of weight first, regions of space within each band.

    Bands end at the fractions 1, 1/ratio, 1/ratio**2 and so on, down to where the rest fits one file. A sample then
    reads little more than its own rows, and a box only the files of its region in each band.

    Args:
        counts: Rows per cube, of the cubes that rows go to.
        tree: The tree the rows were assigned by.
        target_rows: Rows a file should hold.
        band_ratio: Ratio of the upper limits of two bands, above 1.

    Returns:
        The packing; the same input gives the same packing.

    Raises:
        ValueError: If the target is not positive or the ratio not above 1.
    """
    if target_rows < 1 or not band_ratio > 1.0:
        raise ValueError(f"Cannot pack files of {target_rows} rows with band ratio {band_ratio}")
    cubes = sorted(counts, key=lambda cube: cube.path)
    if sum(counts.values()) <= _LARGEST_FILE * target_rows:
        return Packing(tuple(Piece(cube, MIN_WEIGHT, 0) for cube in cubes), min(len(cubes), 1))
    spreads = [_Spread(cube, _weights_of(cube, tree), float(counts[cube])) for cube in cubes]
    pieces: list[Piece] = []
    files = 0
    last_piece: dict[CubeId, Piece] = {}
    for first, end in _bands(spreads, target_rows, band_ratio):
        parts = [
            cut
            for spread in spreads
            if (part := spread.within(first, end)) is not None
            for cut in part.cut(target_rows)
        ]
        numbers = _filled(parts, target_rows)
        for part, file in zip(parts, numbers, strict=True):
            before = last_piece.get(part.cube)
            if before is None or before.file != files + file:
                # The first piece takes every weight from below, so that no row is without a file.
                start = MIN_WEIGHT if before is None else part.weights.first
                last_piece[part.cube] = piece = Piece(part.cube, start, files + file)
                pieces.append(piece)
        files += max(numbers, default=-1) + 1
    pieces.sort(key=lambda piece: (piece.cube.path, piece.first_weight))
    return Packing(tuple(pieces), files)


def _weights_of(cube: CubeId, tree: Tree) -> WeightRange:
    weights = tree.weight_range(cube)
    if weights.first <= weights.last:
        return weights
    # The tree lets no row into this cube: should there be any, they are taken to share one weight.
    return WeightRange(weights.last, weights.last)


def _bands(spreads: Sequence[_Spread], target_rows: int, ratio: float) -> list[tuple[int, int]]:
    """Return [first, end) of each band, lowest weights first."""
    limits = [MAX_WEIGHT + 1]
    below = [sum(spread.rows for spread in spreads)]
    fraction = 1.0
    while below[-1] > target_rows:
        fraction /= ratio
        limit = weight_of(fraction)
        if limit <= MIN_WEIGHT or fraction * _WEIGHTS < 1.0:
            break
        limits.append(limit)
        below.append(sum(spread.below(limit) for spread in spreads))
    limits.append(MIN_WEIGHT)
    below.append(0.0)
    limits.reverse()
    below.reverse()
    bands: list[tuple[int, int]] = []
    start = 0
    for end in range(1, len(limits)):
        is_last = end == len(limits) - 1
        small = below[end] - below[start] < _SMALLEST_BAND * target_rows
        if small and not is_last:
            continue
        if small and bands:
            bands[-1] = (bands[-1][0], limits[end])
        else:
            bands.append((limits[start], limits[end]))
        start = end
    return bands


def _filled(parts: Sequence[_Spread], target_rows: int) -> list[int]:
    """Return the file of each part, numbered from 0 within the band: files of about equal rows, in the given order."""
    rest = sum(part.rows for part in parts)
    files_left = max(1, round(rest / target_rows))
    numbers: list[int] = []
    file = 0
    filled = 0.0
    goal = rest / files_left
    for part in parts:
        # A part goes to the file that holds its middle; what is left is shared among the files that are left.
        is_next = files_left > 1 and filled + part.rows / 2 > goal
        if filled > 0.0 and (is_next or filled + part.rows > _FULL_FILE * target_rows):
            rest -= filled
            files_left = max(1, files_left - 1)
            goal = rest / files_left
            file += 1
            filled = 0.0
        numbers.append(file)
        filled += part.rows
    return numbers
