"""A picture of what reads save on each day, as SVG; pure."""

from __future__ import annotations

from collections.abc import Sequence

from catalog.quantities import size_text
from sql_ext.dashboard.saving_days import DayLine
from sql_ext.dashboard.svg import element, label, picture

_WIDTH, _HEIGHT = 480, 150


def day_picture(days: Sequence[DayLine]) -> str:
    """Returns a picture with a bar for what reads saved and a narrow one for what was rewritten, per day.

    Args:
        days: the days, the oldest first.
    """
    most = max((max(day.saved, day.spent) for day in days), default=0)
    step, bottom = (_WIDTH - 20) / max(len(days), 1), _HEIGHT - 24
    scale = (bottom - 20) / max(most, 1)
    parts = [element("line", class_="axis", x1=10, y1=bottom, x2=_WIDTH - 10, y2=bottom)]
    for number, day in enumerate(days):
        x = 10 + number * step
        saved, spent = day.saved * scale, day.spent * scale
        parts.append(element("rect", class_="first", x=x, y=bottom - saved, width=max(step * 0.6, 1.0), height=saved))
        parts.append(
            element(
                "rect", class_="second", x=x + step * 0.6, y=bottom - spent, width=max(step * 0.25, 1.0), height=spent
            )
        )
        if number % 7 == len(days) % 7:
            parts.append(label(x, _HEIGHT - 8, f"{day.day:%d %b}"))
    parts.append(label(10, 12, f"up to {size_text(most)} a day"))
    return picture(_WIDTH, _HEIGHT, "Bytes saved by reads and bytes rewritten, by day", parts)
