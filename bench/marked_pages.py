"""Pages of the documentation whose tables are made from figures: a part lies between two comments with its name."""

from __future__ import annotations


def page_with(page: str, parts: dict[str, str]) -> str:
    """Returns a page with other texts between its marks.

    Args:
        page: in Markdown.
        parts: texts by the name of their marks; each pair of marks is there exactly once.
    """
    for name, text in parts.items():
        start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
        head, rest = page.split(start)
        page = f"{head}{start}\n{text}\n{end}{rest.split(end)[1]}"
    return page


def row(*cells: object) -> str:
    """A row of a table."""
    return "| " + " | ".join(map(str, cells)) + " |"
