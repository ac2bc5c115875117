"""The pages of the docs as the tests see them: their blocks of code, in order."""

import re
from dataclasses import dataclass
from pathlib import Path

import sqlglot
from markdown_it import MarkdownIt
from sqlglot.tokens import TokenType

ROOT = Path(__file__).resolve().parents[2]
_SETUP = re.compile(r"<!-- setup (sql|python)\n(.*?)-->", re.DOTALL)
_ERROR = re.compile(r"\berror=(\w+)")


@dataclass(frozen=True)
class Block:
    """A block of a page.

    Attributes:
        page: path of the page from the root of the project.
        line: where its code begins, from 1.
        language: first word of the info string; '' for indented code.
        info: the other words.
        code: text of the block.
    """

    page: str
    line: int
    language: str
    info: str
    code: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def error(self) -> str | None:
        """Code of the error that the block is there to show."""
        found = _ERROR.search(self.info)
        return found[1] if found else None

    @property
    def runs(self) -> bool:
        """Whether a session is all that it needs."""
        return self.language in ("sql", "python") and not {"server", "cluster", "recipe"} & set(self.info.split())

    @property
    def is_output(self) -> bool:
        """Whether it shows what the block before it prints."""
        return self.language == "text" and "output" in self.info.split()


def pages() -> list[str]:
    """README and every page below ``docs``, by path from the root."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [str(file.relative_to(ROOT)) for file in found]


def blocks(page: str) -> list[Block]:
    """The blocks of a page, hidden preparations included."""
    found = []
    for token in MarkdownIt().parse((ROOT / page).read_text(encoding="utf-8")):
        line = token.map[0] + 2 if token.map else 0
        if token.type in ("fence", "code_block"):
            language, _, info = token.info.strip().partition(" ")
            found.append(Block(page, line, language, info.strip(), token.content))
        elif token.type == "html_block":
            found += [Block(page, line, language, "setup", code) for language, code in _SETUP.findall(token.content)]
    return found


def statements(sql: str) -> list[str]:
    """The statements of a block, cut at the semicolons that are no part of a text, a name or a comment."""
    found, start = [], 0
    for token in sqlglot.tokenize(sql, read="spark"):
        if token.token_type == TokenType.SEMICOLON:
            found.append(sql[start : token.start])
            start = token.end + 1
    return [text.strip() for text in [*found, sql[start:]] if sqlglot.tokenize(text, read="spark")]
