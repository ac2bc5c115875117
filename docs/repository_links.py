"""Makes links between the site's pages and the files beside ``docs`` lead to pages of the site.

README, CONTRIBUTING and the changelog lie at the root, where code hosts show them, and are pages of the site too. Their
links start at the root, and those of other pages to them start with ``../``: both are right in a Markdown view.
"""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx

_PAGES = {"README.md": "readme.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
_LINK = re.compile(r"(\]\()((?:\.\./)+|docs/|)([^)#:\s]+\.md)(?=[#)])")
_PICTURE = re.compile(r"(\]\()docs/([^)#:\s]+\.(?:svg|png)\))")
# Files that are no pages: the site offers them as downloads.
_FILE = re.compile(r"(\]\()((?!docs/|\.\.?/|/)[^)#:\s]+\.(?:ipynb|py))(?=\))")


def to_site(text: str, at_root: bool) -> str:
    """The text with its links as the site needs them.

    Args:
        text: a page in Markdown.
        at_root: whether it lies beside ``docs`` rather than in it.
    """

    def rebased(link: re.Match[str]) -> str:
        start, prefix, target = link.groups()
        outside = prefix.startswith("../") or (at_root and not prefix)
        if outside and target in _PAGES:
            return f"{start}/{_PAGES[target]}"
        return f"{start}/{target}" if at_root and prefix == "docs/" else link[0]

    if at_root:
        text = _PICTURE.sub(r"\1/\2", _FILE.sub(r"\1../\2", text))
    return _LINK.sub(rebased, text)


def _page_read(_app: Sphinx, _page: str, text: list[str]) -> None:
    text[0] = to_site(text[0], at_root=False)


def _included(_app: Sphinx, path: Path, _page: str, text: list[str]) -> None:
    if path.name in _PAGES:
        text[0] = to_site(text[0], at_root=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("source-read", _page_read)
    app.connect("include-read", _included)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
