"""File selection, one strategy per file. Adding one is adding a file and its line in ``STRATEGIES``."""

from catalog.errors import UnknownNameError
from catalog.properties.names import declare_options
from procedures.selection.cube_defragmentation import CubeDefragmentation
from procedures.selection.file_list import FileList
from procedures.selection.leveled_compaction import LeveledCompaction
from procedures.selection.revision_rewrite import RevisionRewrite
from procedures.selection.sampling_overhead import SamplingOverheadReduction
from procedures.selection.selection_strategy import SelectionSettings, Strategy
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


def register_strategy(made: Strategy) -> None:
    """Makes a strategy available by its name; a later registration of the same name replaces the earlier one."""
    STRATEGIES[made.name] = made
    declare_options(option.name for option in made.options)


def strategy(name: str) -> Strategy:
    """Returns the strategy of this name, any case.

    Raises:
        UnknownNameError: none of this name; the text gives the nearest match.
    """
    by_lower = {known.lower(): found for known, found in STRATEGIES.items()}
    found = by_lower.get(name.strip().lower())
    if found is None:
        raise UnknownNameError.of("strategy", name.strip(), STRATEGIES)
    return found


__all__ = ["DEFAULT_STRATEGIES", "STRATEGIES", "SelectionSettings", "Strategy", "register_strategy", "strategy"]
