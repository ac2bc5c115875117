"""The table properties that ask for automatic optimization, in both families of names."""

from __future__ import annotations

from collections.abc import Mapping

TYPE_KEY = "use.optimization.type"
_AUTO = "use.optimization.autoOptimize."


def effective_type(configuration: Mapping[str, str]) -> str | None:
    """The strategies that the properties ask for, as ``use.optimization.type`` would; None when nothing is asked.

    Where both families are set, the newer one, ``autoOptimize``, decides.
    """
    enabled = configuration.get(f"{_AUTO}enabled")
    if enabled is None:
        return configuration.get(TYPE_KEY)
    if enabled.strip().lower() != "true":
        return None

    def is_on(key: str) -> bool:
        return configuration.get(f"{_AUTO}optimizeUnindexedFiles.{key}", "true").strip().lower() == "true"

    names = ["LeveledCompaction"] if configuration.get(f"{_AUTO}revisionId", "").strip() != "0" else []
    if is_on("enabled"):
        names.insert(0 if is_on("prioritize") else len(names), "UnindexedFiles")
    return ",".join(names) or None
