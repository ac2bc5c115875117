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
    """Builds the shim if it is stale or missing."""

    def dependencies(self) -> list[str]:
        """Asks for pyspark, against which the shim is compiled, only where the shim has to be built."""
        shim = _build_shim(self.root)
        if shim.is_fresh():
            return []
        try:
            shim.find_java()  # before pyspark is downloaded
            return [f"pyspark=={shim.pinned('pyspark')}"]
        except shim.ShimError as error:
            raise SystemExit(f"build_shim: {error}") from None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - the hook's interface
        """Builds the shim if it is stale or missing."""
        shim = _build_shim(self.root)
        try:
            shim.ensure()
        except shim.ShimError as error:
            raise SystemExit(f"build_shim: {error}") from None
