"""The arguments that ``scan`` and ``diagnose`` have in common."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath
from typing import Any

from catalog.errors import InvalidArgumentError


def checked_location(parameter: str, path: Any, accepted: str) -> str:
    """Returns a path or URL as text.

    Args:
        parameter: that names it.
        path: as text, or a path of ``pathlib``.
        accepted: what is accepted, for the error.

    Raises:
        InvalidArgumentError: it is neither, or blank.
    """
    location = fspath(path) if isinstance(path, (str, PathLike)) else None
    if not isinstance(location, str) or not location.strip():
        raise InvalidArgumentError.of(parameter, str(path), accepted)
    return location


def checked_storage_options(options: Any) -> Mapping[str, str]:
    """Returns the options for object stores; none for None.

    Raises:
        InvalidArgumentError: they are no texts by texts.
    """
    if options is None:
        return {}
    if not isinstance(options, Mapping) or not all(isinstance(text, str) for pair in options.items() for text in pair):
        # Values may be secrets.
        raise InvalidArgumentError.of("storage_options", type(options).__name__, "a dict of texts by texts")
    return options
