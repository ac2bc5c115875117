"""Checks that ``docs/python.md`` names all that is public in ``sql_ext``: ``python docs/check_api_reference.py``."""

from __future__ import annotations

import enum
import inspect
import re
import sys
from pathlib import Path

import sql_ext

PAGE = Path(__file__).with_name("python.md")


def missing_names(page: str | None = None) -> list[str]:
    """The public names, and public members of public classes, that the page does not have in code.

    Args:
        page: text of the page; that of ``docs/python.md`` when left out.
    """
    text = PAGE.read_text(encoding="utf-8") if page is None else page
    # Names count where they are set as code: a word of prose documents nothing.
    code = " ".join(re.findall(r"```.*?```|`[^`\n]+`", text, re.DOTALL))
    words = set(re.findall(r"\w+", code))
    return [name for name in public_names() if name.rpartition(".")[2] not in words]


def public_names() -> list[str]:
    """The names of ``sql_ext``, and ``Class.member`` of its classes."""
    names: list[str] = []
    for name in sql_ext.__all__:
        names.append(name)
        item = getattr(sql_ext, name)
        if inspect.isclass(item):
            names += [f"{name}.{member}" for member in _members(item)]
    return names


def _members(item: type) -> list[str]:
    if issubclass(item, enum.Enum):
        return [str(member.value) for member in item]
    own = {
        name
        for name, member in vars(item).items()
        if not name.startswith("_") and (isinstance(member, (property, classmethod)) or inspect.isfunction(member))
    }
    return sorted(own | set(getattr(item, "__dataclass_fields__", ())))


def main() -> int:
    """Prints the missing names; 1 when there are any."""
    missing = missing_names()
    for name in missing:
        sys.stdout.write(f"{PAGE.name} does not mention {name}\n")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
