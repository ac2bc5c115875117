"""Docstrings in Google style as values: what an operation and its parameters say about themselves."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass

_SECTION = re.compile(r"\n\n(?=(?:Args|Returns|Raises):\n)")
_ARGUMENT = re.compile(r"    (\w+): (.+)")
_WIDTH = 100


@dataclass(frozen=True)
class Docstring:
    """A docstring in Google style.

    Attributes:
        description: the paragraphs before the first section.
        arguments: sentence of each argument by name, on one line.
        outcomes: the other sections, as written.
    """

    description: str
    arguments: Mapping[str, str]
    outcomes: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Docstring:
        """Parses a docstring.

        Args:
            text: the docstring, indented as in the source.
        """
        description, *sections = _SECTION.split(inspect.cleandoc(text))
        arguments: dict[str, str] = {}
        for section in sections:
            if section.startswith("Args:\n"):
                arguments |= _arguments(section.splitlines()[1:])
        return cls(description, arguments, tuple(s for s in sections if not s.startswith("Args:\n")))

    @property
    def summary(self) -> str:
        """The first paragraph on one line."""
        return " ".join(self.description.partition("\n\n")[0].split())

    def text(self, arguments: Mapping[str, str]) -> str:
        """Returns the docstring with these arguments in place of its own.

        Args:
            arguments: sentence of each argument by name.
        """
        lines = [
            textwrap.fill(
                f"{name}: {sentence}",
                _WIDTH,
                initial_indent=" " * 4,
                subsequent_indent=" " * 8,
                break_long_words=False,
                break_on_hyphens=False,
            )
            for name, sentence in arguments.items()
        ]
        args = ["\n".join(["Args:", *lines])] if lines else []
        return "\n\n".join([self.description, *args, *self.outcomes])


def _arguments(lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    name = ""
    for line in lines:
        if match := _ARGUMENT.fullmatch(line):
            name = match[1]
            found[name] = match[2]
        elif name:
            found[name] += f" {line.strip()}"
    return found
