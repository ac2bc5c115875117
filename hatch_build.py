"""Builds a stale shim before a wheel, an sdist or an editable install, and makes the readme for a package index."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

if TYPE_CHECKING:
    from types import ModuleType


# A link to a file of the repository, which a package index does not have.
_RELATIVE_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!#|[a-z]+:)[^)\s]+\)")
_RELATIVE_PICTURE = re.compile(r"!\[[^\]]*\]\((?!#|[a-z]+:)[^)\s]+\)\n+")


def index_readme(text: str) -> str:
    """Returns a readme without pictures of the repository and links into it; the words of such links stay.

    Args:
        text: README.md.
    """
    return _RELATIVE_LINK.sub(r"\1", _RELATIVE_PICTURE.sub("", text))


class ReadmeHook(MetadataHookInterface):
    """Gives the package the readme that a package index shows."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Sets the readme."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": index_readme(text)}


def _build_shim(root: str) -> ModuleType:
    """Imports ``jars-build/build_shim.py``, which is no package."""
    path = Path(root) / "jars-build" / "build_shim.py"
    spec = importlib.util.spec_from_file_location("build_shim", path)
    if spec is None or spec.loader is None:
        raise ImportError(str(path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class ShimHook(BuildHookInterface[Any]):
    """Builds the shims that are stale or missing.

    A wheel has those of all pairs of Spark and Delta. An editable install has the one of the installed pair.
    """

    def dependencies(self) -> list[str]:
        """Asks for pip, which downloads the Sparks that the shims are compiled against."""
        return ["pip"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - the hook's interface
        """Builds the shims."""
        if version == "editable":
            return  # made by the Makefile, for the versions that are installed
        shim = _build_shim(self.root)
        try:
            shim.ensure(shim.all_pairs())
        except shim.ShimError as error:
            raise SystemExit(f"build_shim: {error}") from None
