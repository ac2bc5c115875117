"""Elements of SVG as text. Colours are classes of the style sheet, and all texts are escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable


def element(name: str, content: str = "", **attributes: object) -> str:
    """Returns an element.

    Args:
        name: its name.
        content: elements and escaped texts in it.
        **attributes: its attributes; ``_`` stands for ``-``, and a ``_`` at the end of a name for nothing.
    """
    shown = "".join(f' {_name(key)}="{_text(value)}"' for key, value in attributes.items())
    return f"<{name}{shown}>{content}</{name}>" if content else f"<{name}{shown}/>"


def _name(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _text(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else html.escape(str(value), quote=True)


def label(x: float, y: float, text: str, anchor: str = "start") -> str:
    """Returns a text.

    Args:
        x: where it begins, or where its middle or its end is.
        y: its base line.
        text: the text, which is escaped.
        anchor: ``start``, ``middle`` or ``end``.
    """
    return element("text", html.escape(text), x=x, y=y, text_anchor=anchor)


def picture(width: int, height: int, title: str, parts: Iterable[str]) -> str:
    """Returns a picture with a name for people who do not see it.

    Args:
        width: width of its coordinates.
        height: height of its coordinates.
        title: its name.
        parts: its elements.
    """
    shown = html.escape(title, quote=True)
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{shown}"><title>{shown}</title>'
        f"{''.join(parts)}</svg>"
    )


def shortened(text: str, most: int = 28) -> str:
    """Returns a text that fits next to an axis.

    Args:
        text: the text.
        most: number of characters that fit.
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"
