"""A report of a table, as notebooks show it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class TableReport:
    """A page about a table, which needs no network. A notebook shows it inline.

    Attributes:
        table: full name of the table.
        health: score of its health, from 0 to 100.
        html: the page.
    """

    table: str
    health: int
    html: str = field(repr=False)

    def save(self, path: str | Path) -> Path:
        """Writes the page to a file.

        Args:
            path: the file.

        Returns:
            Its absolute path.

        Raises:
            OSError: the file cannot be written.
        """
        file = Path(path).absolute()
        file.write_text(self.html, encoding="utf-8")
        return file

    def _repr_html_(self) -> str:
        """The content of the page, for a place in another page."""
        return self.html[self.html.index("<main") : self.html.index("</main>") + len("</main>")]
