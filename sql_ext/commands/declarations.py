"""The signatures of procedures as a file, so that help and the check of arguments import neither Spark nor NumPy.

``declarations.json`` has what the registry declares. A test compares both, and writes the file anew after a change.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from procedures.declare.signature import Parameter, Signature

# Fields of a parameter that have a default.
_MORE = ("accepted", "not_blank", "least", "most", "choices")
FILE = Path(__file__).with_name("declarations.json")


@dataclass(frozen=True)
class Declarations:
    """What commands need to know before they run.

    Attributes:
        signatures: of the procedures, by name.
        views: names of the virtual tables.
        strategies: aliases of the strategies of ``optimize``, by name.
    """

    signatures: Mapping[str, Signature]
    views: tuple[str, ...]
    strategies: Mapping[str, tuple[str, ...]]


@cache
def declarations() -> Declarations:
    """Reads the file."""
    stored = json.loads(FILE.read_text(encoding="utf-8"))
    return Declarations(
        {
            name: Signature(name, procedure["doc"], tuple(map(_parameter, procedure["parameters"])))
            for name, procedure in stored["procedures"].items()
        },
        tuple(stored["views"]),
        {name: tuple(aliases) for name, aliases in stored["strategies"].items()},
    )


def _parameter(fields: dict[str, Any]) -> Parameter:
    return Parameter(**{**fields, "choices": tuple(fields.get("choices", ()))})


def declared(name: str) -> Signature:
    """Returns the signature of a built-in procedure.

    Args:
        name: as in ``CALL use.<name>``.
    """
    return declarations().signatures[name]


def text_of(declared: Declarations) -> str:
    """Returns the text of the file.

    Args:
        declared: what the file has.
    """
    procedures = {
        name: {"doc": signature.doc, "parameters": [_fields_of(parameter) for parameter in signature.parameters]}
        for name, signature in declared.signatures.items()
    }
    stored = {"procedures": procedures, "views": declared.views, "strategies": declared.strategies}
    return json.dumps(stored, indent=1, ensure_ascii=False) + "\n"


def _fields_of(parameter: Parameter) -> dict[str, Any]:
    """The fields that differ from their defaults; command lines have no values of ``accepts``."""
    fields: dict[str, Any] = {"name": parameter.name, "type": parameter.type, "doc": parameter.doc}
    if not parameter.required:
        fields["default"] = parameter.default
    return fields | {name: value for name in _MORE if (value := getattr(parameter, name)) not in (None, "", ())}
