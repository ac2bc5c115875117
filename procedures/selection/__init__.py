"""File selection, one strategy per file. Adding one is adding a file and its line in ``STRATEGIES``."""

from catalog.errors import UnknownNameError
from catalog.properties.names import declare_options
from procedures.selection.cube_defragmentation import CubeDefragmentation
from procedures.selection.file_list import FileList
from procedures.selection.leveled_compaction import LeveledCompaction
from procedures.selection.revision_rewrite import RevisionRewrite
from procedures.selection.sampling_overhead import SamplingOverheadReduction
from procedures.selection.selection_strategy import SelectionSettings, Selector, Strategy, check_strategy
from procedures.selection.unindexed_files import UnindexedFiles

STRATEGIES: dict[str, Strategy] = {
    s.name: s
    for s in (
        UnindexedFiles(),
        LeveledCompaction(),
        CubeDefragmentation(),
        SamplingOverheadReduction(),
        RevisionRewrite(),
        FileList(),
    )
}
DEFAULT_STRATEGIES = ("UnindexedFiles", "LeveledCompaction")
for _strategy in STRATEGIES.values():
    declare_options(option.name for option in _strategy.options)


def register_strategy(strategy: Strategy) -> None:
    """Makes a strategy available by its name; a later registration of the same name replaces the earlier one.

    Args:
        strategy: an instance of a subclass that overrides ``select`` or ``begin``.

    Raises:
        InvalidArgumentError: not such an instance.
    """
    check_strategy(strategy)
    STRATEGIES[strategy.name] = strategy
    declare_options(option.name for option in strategy.options)


def strategy(name: str) -> Strategy:
    """Returns the strategy of this name, any case.

    Raises:
        UnknownNameError: none of this name; the text gives the nearest match.
    """
    by_lower = {known.lower(): registered for known, registered in STRATEGIES.items()}
    registered = by_lower.get(name.strip().lower())
    if registered is None:
        raise UnknownNameError.of("strategy", name.strip(), STRATEGIES)
    return registered


__all__ = [
    "DEFAULT_STRATEGIES",
    "STRATEGIES",
    "SelectionSettings",
    "Selector",
    "Strategy",
    "register_strategy",
    "strategy",
]
