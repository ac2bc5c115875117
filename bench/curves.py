"""Hilbert against z-order, with bands and without: shares of rows that boxes and samples read, without Spark.

``python bench/curves.py`` lays random skewed rows out by the packing of a rewrite and counts the rows of the files, and
of the pages inside them, that a query could not skip by their minima and maxima.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from otree.curve import Ranks, bits_per_dimension, hilbert_keys, interleaved
from otree.packing import Band, Packing, Run, pack
from otree.weight import MAX_WEIGHT, MIN_WEIGHT, weight_of

SAMPLES = (0.01, 0.1, 0.5)
BOXES = (0.001, 0.01, 0.1)
BOXES_EACH = 20


def main() -> None:
    """Prints a line per curve and packing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--files", type=int, default=28)
    parser.add_argument("--page-rows", type=int, nargs="*", default=[5_000, 20_000])
    arguments = parser.parse_args()
    chance = np.random.default_rng(5)
    for dimensions in (2, 3):
        values = [np.exp(chance.normal(0, 1 + axis, arguments.rows)) for axis in range(dimensions)]
        weights = chance.integers(MIN_WEIGHT, MAX_WEIGHT, arguments.rows, dtype=np.int32, endpoint=True)
        bits = bits_per_dimension(dimensions)
        codes = [Ranks.of_sample(axis[:200_000], bits).codes_of(axis) for axis in values]
        boxes = _boxes(values, chance)
        for curve, key_of in (("hilbert", hilbert_keys), ("z-order", interleaved)):
            keys = key_of(codes, bits)
            packing = pack(weights[:200_000], keys[:200_000], arguments.rows, arguments.rows // arguments.files)
            for name, chosen in (("bands", packing), ("no bands", _one_band(keys, arguments.files))):
                for page in arguments.page_rows:
                    found = _shares(values, weights, keys, chosen, boxes, page)
                    print(f"{dimensions} columns, {curve}, {name}, pages of {page} rows:", found, flush=True)


def _boxes(
    values: list[NDArray[np.float64]], chance: np.random.Generator
) -> dict[float, list[list[tuple[float, float]]]]:
    boxes = {}
    for share in BOXES:
        side = share ** (1 / len(values))
        lows = chance.uniform(0, 1 - side, (BOXES_EACH, len(values)))
        boxes[share] = [
            [tuple(np.quantile(axis[:100_000], [low, low + side])) for axis, low in zip(values, place, strict=True)]
            for place in lows
        ]
    return boxes


def _one_band(keys: NDArray[np.int64], files: int) -> Packing:
    cuts = np.unique(np.quantile(keys[:200_000], np.arange(files) / files).astype(np.int64))
    return Packing((Band(MIN_WEIGHT, tuple(Run(int(key), file, 1) for file, key in enumerate(cuts))),), len(cuts))


def _shares(
    values: list[NDArray[np.float64]],
    weights: NDArray[np.int32],
    keys: NDArray[np.int64],
    packing: Packing,
    boxes: dict[float, list[list[tuple[float, float]]]],
    page_rows: int,
) -> dict[str, float]:
    files = np.empty(len(keys), np.int64)
    firsts = [band.first_weight for band in packing.bands] + [MAX_WEIGHT + 1]
    for band, low, high in zip(packing.bands, [MIN_WEIGHT, *firsts[1:-1]], firsts[1:], strict=True):
        inside = (weights >= low) & (weights < high)
        run = np.searchsorted([r.first_key for r in band.runs], keys[inside], side="right") - 1
        files[inside] = np.array([r.first_file for r in band.runs])[np.maximum(run, 0)]
    order = np.lexsort((keys, files))
    files = files[order]
    starts = np.flatnonzero(np.diff(files, prepend=-1))
    sizes = np.diff(np.append(starts, len(files)))
    pages = np.concatenate(
        [np.arange(start, start + size, page_rows) for start, size in zip(starts, sizes, strict=True)]
    )
    found = {}
    lowest = np.minimum.reduceat(weights[order], starts)
    for fraction in SAMPLES:
        found[f"sample {fraction}"] = sizes[lowest < weight_of(fraction)].sum() / len(files)
    for what, cuts in (("files", starts), ("pages", pages)):
        rows = np.diff(np.append(cuts, len(files)))
        ranges = [(np.minimum.reduceat(a[order], cuts), np.maximum.reduceat(a[order], cuts)) for a in values]
        for share, places in boxes.items():
            hits = [
                rows[
                    np.all(
                        [
                            (most >= low) & (least <= high)
                            for (least, most), (low, high) in zip(ranges, box, strict=True)
                        ],
                        axis=0,
                    )
                ].sum()
                for box in places
            ]
            found[f"box {share} {what}"] = np.mean(hits) / len(files)
    return {name: round(float(share), 4) for name, share in found.items()}


if __name__ == "__main__":
    main()
