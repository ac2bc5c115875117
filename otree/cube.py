"""Identity of a cube: which part of the index space it covers, and how the format spells it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from otree.errors import IndexFormatError

SYMBOLS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_VALUE_OF = {symbol: value for value, symbol in enumerate(SYMBOLS)}
BITS_PER_SYMBOL = 6
# Characters in the order of the symbols' values.
_PREORDER = str.maketrans(SYMBOLS, "".join(chr(ord("0") + value) for value in range(64)))


@dataclass(frozen=True, order=True)
class CubeId:
    """A cube of the tree: the root box [0, 1]^dimensions halved in every dimension once per level.

    Cubes of one tree are ordered depth-first, an ancestor before its descendants.

    Attributes:
        dimensions: Number of indexed columns, at least 1.
        path: One code per level, root first. A code is in [0, 2**dimensions); dimension 0 is its most significant
            bit, and a set bit means the upper half of that dimension.

    Source:
        Index format, section 5 (cube ids).
    """

    dimensions: int
    path: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Refuse codes that are not a cube.

        Raises:
            ValueError: If there is no dimension or a code is out of range.
        """
        if self.dimensions < 1:
            raise ValueError(f"A cube needs at least one dimension, got {self.dimensions}")
        if self.path and not (min(self.path) >= 0 and max(self.path) < 1 << self.dimensions):
            raise ValueError(f"Cube path {self.path} has a code outside [0, 2**{self.dimensions})")

    @classmethod
    def root(cls, dimensions: int) -> "CubeId":
        """Return the cube of the whole space."""
        return cls(dimensions)

    @classmethod
    def parse(cls, text: str, dimensions: int) -> "CubeId":
        """Read the format's spelling.

        Args:
            text: The cube id as in a block; empty for the root.
            dimensions: Number of indexed columns.

        Returns:
            The cube.

        Raises:
            IndexFormatError: If a symbol is unknown, a level is cut off, or an unused bit is set.
        """
        width = symbols_per_level(dimensions)
        if len(text) % width:
            raise IndexFormatError.of_field("cubeId", text, f"a multiple of {width} symbols")
        unused = width * BITS_PER_SYMBOL - dimensions
        path = []
        for start in range(0, len(text), width):
            bits = 0
            for symbol in text[start : start + width]:
                if symbol not in _VALUE_OF:
                    raise IndexFormatError.of_field("cubeId", text, "symbols of A-Z a-z 0-9 + /")
                bits = bits << BITS_PER_SYMBOL | _VALUE_OF[symbol]
            code = bits >> unused
            if code << unused != bits:
                raise IndexFormatError.of_field("cubeId", text, f"unused bits to be zero with {dimensions} dimensions")
            path.append(code)
        return cls(dimensions, tuple(path))

    @classmethod
    def of_point(cls, coordinates: Sequence[float], depth: int) -> "CubeId":
        """Return the cube of a depth that holds a point.

        Args:
            coordinates: One coordinate in [0, 1] per dimension; 1.0 belongs to the last cube.
            depth: Number of levels below the root.

        Returns:
            The cube.

        Raises:
            ValueError: If a coordinate is outside [0, 1].
        """
        codes = codes_of_point(coordinates)
        return cls(len(coordinates), tuple(next(codes) for _ in range(depth)))

    @property
    def cell(self) -> int:
        """The codes as one number, first level in the highest bits."""
        number = 0
        for code in self.path:
            number = number << self.dimensions | code
        return number

    @property
    def text(self) -> str:
        """The format's spelling: ceil(dimensions / 6) symbols per level, unused low bits zero."""
        width = symbols_per_level(self.dimensions)
        unused = width * BITS_PER_SYMBOL - self.dimensions
        shifts = range((width - 1) * BITS_PER_SYMBOL, -1, -BITS_PER_SYMBOL)
        return "".join(SYMBOLS[code << unused >> shift & 63] for code in self.path for shift in shifts)

    @property
    def depth(self) -> int:
        """Number of levels below the root."""
        return len(self.path)

    @property
    def parent(self) -> "CubeId | None":
        """The cube one level up, None for the root."""
        return CubeId(self.dimensions, self.path[:-1]) if self.path else None

    def child(self, code: int) -> "CubeId":
        """Return the child with a code in [0, 2**dimensions)."""
        return CubeId(self.dimensions, (*self.path, code))

    def ancestors(self) -> Iterator["CubeId"]:
        """Yield the cubes above this one, root first, without itself."""
        for depth in range(len(self.path)):
            yield CubeId(self.dimensions, self.path[:depth])

    def box(self) -> tuple[tuple[float, float], ...]:
        """Return [from, to) per dimension, in coordinates; exact down to depth 52."""
        size = 2.0**-self.depth
        borders = []
        for dimension in range(self.dimensions):
            bit = self.dimensions - 1 - dimension
            position = 0
            for code in self.path:
                position = position << 1 | (code >> bit & 1)
            borders.append((position * size, (position + 1) * size))
        return tuple(borders)


def codes_of_point(coordinates: Sequence[float]) -> Iterator[int]:
    """Yield the codes of the cubes that hold a point, from the root down, without end.

    Args:
        coordinates: One coordinate in [0, 1] per dimension.

    Yields:
        The code of each next level.

    Raises:
        ValueError: If a coordinate is outside [0, 1].
    """
    rest = list(coordinates)
    for coordinate in rest:
        if not 0.0 <= coordinate <= 1.0:
            raise ValueError(f"Coordinate {coordinate} is outside [0, 1]")
    while True:
        code = 0
        for dimension, coordinate in enumerate(rest):
            # Doubling and the subtraction are exact, and 1.0 stays 1.0, hence in the last cube for ever.
            doubled = coordinate * 2.0
            upper = doubled >= 1.0
            rest[dimension] = doubled - 1.0 if upper else doubled
            code = code << 1 | upper
        yield code


def symbols_per_level(dimensions: int) -> int:
    """Return how many symbols of a cube's text stand for one level."""
    return -(-dimensions // BITS_PER_SYMBOL)


def preorder_key(text: str) -> str:
    """Return what sorts cubes of one tree, given by their texts, as `CubeId` sorts them: depth-first."""
    return text.translate(_PREORDER)
