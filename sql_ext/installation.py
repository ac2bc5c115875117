"""Check that Python imports the packages that were installed with this one."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

DISTRIBUTION = "use-spark"
PACKAGES = ("otree", "catalog", "procedures")
"""Top-level packages that the distribution installs in addition to ``sql_ext``."""


def check_packages(find: Callable[[str], ModuleSpec | None] = PathFinder.find_spec) -> None:
    """Raises an error if another package hides one of ``PACKAGES``.

    Their names are common words. A folder ``catalog`` in the working directory, or another distribution that comes
    first on ``sys.path``, would otherwise surface as a missing module somewhere inside USE.

    Args:
        find: returns how Python would import a top-level package.

    Raises:
        ImportError: a package is missing, or would be imported from elsewhere; the message names both places.
    """
    root = Path(__file__).resolve().parent.parent
    for name in PACKAGES:
        installed, places = root / name, _places(find(name))
        if installed in places[:1]:
            continue
        if not places:
            raise ImportError(
                f"USE for Spark is incomplete: {installed} is missing. Install {DISTRIBUTION} again.", name=name
            )
        raise ImportError(
            f"The package '{name}' in {places[0]} hides the one of USE for Spark in {installed}. "
            f"Rename it, or put {root} before it on sys.path.",
            name=name,
            path=str(places[0]),
        )


def _places(spec: ModuleSpec | None) -> list[Path]:
    """Returns the folders, or the file, from which Python would import a package."""
    if spec is None:
        return []
    if spec.submodule_search_locations is not None:
        return [Path(place).resolve() for place in spec.submodule_search_locations]
    return [] if spec.origin is None else [Path(spec.origin).resolve()]


def other_owners(
    owners: Callable[[], Mapping[str, Sequence[str]]] = importlib.metadata.packages_distributions,
    names: Iterable[str] = PACKAGES,
) -> dict[str, list[str]]:
    """Returns the other distributions that install a package of the same name, by package.

    Two distributions with one package name write into one folder, where ``check_packages`` sees a single package.

    Args:
        owners: returns the distributions of every installed top-level package.
        names: packages to look for.
    """
    installed = owners()
    others = {name: sorted({d for d in installed.get(name, ()) if d != DISTRIBUTION}) for name in names}
    return {name: distributions for name, distributions in others.items() if distributions}
