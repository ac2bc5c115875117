"""Pictures of the layout of a table and of its files, as SVG; pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from catalog.counted_nouns import counted
from catalog.files.arrays import Floats
from catalog.quantities import size_text
from procedures.insight.report.facts import CubeBox
from sql_ext.dashboard.svg import element, label, picture, shortened

MOST_CUBES = 2_000
"""Cubes of a picture."""
_SIDE, _LEFT, _TOP = 300, 40, 14
_WIDTH, _HEIGHT = 480, 200
_BINS = 16


def cube_picture(cubes: Sequence[CubeBox], columns: Sequence[str]) -> str:
    """Returns a picture of cubes over one or two columns, as shares of the index space.

    A deeper cube has a thinner border, and one with more rows per space a stronger colour.

    Args:
        cubes: the cubes, those of lower depth first.
        columns: names of the columns.
    """
    most = max((_density(cube) for cube in cubes), default=1.0)
    deepest = max((cube.depth for cube in cubes), default=0)
    parts = [element("rect", class_="frame", x=_LEFT, y=_TOP, width=_SIDE, height=_SIDE)]
    for cube in cubes:
        x, y = _LEFT + cube.x[0] * _SIDE, _TOP + (1 - cube.y[1]) * _SIDE
        parts.append(
            element(
                "rect",
                class_="cube deepest" if cube.depth == deepest and deepest else "cube",
                x=x,
                y=y,
                width=(cube.x[1] - cube.x[0]) * _SIDE,
                height=(cube.y[1] - cube.y[0]) * _SIDE,
                fill_opacity=0.03 + 0.37 * (_density(cube) / most if most else 0.0),
                stroke_width=max(1.6 - 0.3 * cube.depth, 0.4),
            )
        )
    bottom = _TOP + _SIDE
    parts += [label(_LEFT, bottom + 16, "0"), label(_LEFT + _SIDE, bottom + 16, "1", "end")]
    parts.append(label(_LEFT + _SIDE / 2, bottom + 16, f"{shortened(columns[0])} →", "middle"))
    if len(columns) > 1:
        parts += [label(_LEFT - 6, bottom, "0", "end"), label(_LEFT - 6, _TOP + 10, "1", "end")]
        middle = _TOP + _SIDE / 2
        name = label(_LEFT - 12, middle, f"{shortened(columns[1])} →", "middle")
        parts.append(element("g", name, transform=f"rotate(-90 {_LEFT - 12} {middle:g})"))
    title = f"{len(cubes)} cubes of the newest revision over {' and '.join(columns)}"
    return picture(_LEFT + _SIDE + 12, bottom + 24, title, parts)


def _density(cube: CubeBox) -> float:
    area = (cube.x[1] - cube.x[0]) * (cube.y[1] - cube.y[0])
    return float(np.log1p(cube.rows / max(area, 1e-12)))


def size_table(sizes: Floats, is_indexed: Sequence[bool]) -> list[tuple[str, int, int]]:
    """Returns the numbers of files by size: the upper end of a range of sizes, indexed files and others.

    Args:
        sizes: bytes of each file.
        is_indexed: whether each file is indexed.
    """
    if not len(sizes):
        return []
    flags = np.asarray(is_indexed, dtype=bool)
    powers = np.ceil(np.log2(np.maximum(sizes, 1.0))).astype(int)
    last = int(powers.max())
    powers = np.maximum(powers, last - _BINS + 1)
    return [
        (size_text(2**power), int((flags & (powers == power)).sum()), int((~flags & (powers == power)).sum()))
        for power in range(int(powers.min()), last + 1)
    ]


def size_picture(rows: Sequence[tuple[str, int, int]]) -> str:
    """Returns a picture of the numbers of files by size.

    Args:
        rows: as of ``size_table``.
    """
    most = max((indexed + others for _, indexed, others in rows), default=1)
    step, bottom = (_WIDTH - 20) / max(len(rows), 1), _HEIGHT - 24
    scale = (bottom - 16) / most
    parts = [element("line", class_="axis", x1=10, y1=bottom, x2=_WIDTH - 10, y2=bottom)]
    every = max(1, -(-len(rows) // 6))
    for number, (name, indexed, others) in enumerate(rows):
        x, width = 10 + number * step, max(step - 3, 1.0)
        parts.append(
            element("rect", class_="first", x=x, y=bottom - indexed * scale, width=width, height=indexed * scale)
        )
        top = bottom - (indexed + others) * scale
        parts.append(element("rect", class_="second", x=x, y=top, width=width, height=others * scale))
        if number % every == 0:
            parts.append(label(x + width / 2, _HEIGHT - 8, name, "middle"))
    parts.append(label(10, 12, f"up to {counted(most, 'file')}"))
    return picture(_WIDTH, _HEIGHT, "Files by size, indexed and not indexed", parts)
