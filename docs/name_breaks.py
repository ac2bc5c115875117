"""Lets browsers wrap long names in tables between their words, so that tables fit their column.

A ``<wbr>`` is not copied with the text, unlike a blank of no width.
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

_CELL = re.compile(r"<td>.*?</td>", re.DOTALL)
_CODE = re.compile(r'(?<=<span class="pre">)[^<]+(?=</span>)')
_BREAK = re.compile(r"(?<=[._,/])(?=\w)|(?<=[a-z])(?=[A-Z])")


def with_breaks(html: str) -> str:
    """The page with places where a browser may wrap code in the cells of tables.

    Args:
        html: the body of a page.
    """

    def cell(match: re.Match[str]) -> str:
        return _CODE.sub(lambda code: _BREAK.sub("<wbr>", code[0]), match[0])

    return _CELL.sub(cell, html)


def _page_made(_app: Sphinx, _page: str, _template: str, context: dict[str, Any], _tree: object) -> None:
    if "body" in context:
        context["body"] = with_breaks(context["body"])


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("html-page-context", _page_made)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
