"""File selection, one strategy per file. Adding one is adding a file and its line in ``built_in_strategies``."""

from catalog.errors import UnknownNameError
from catalog.properties.names import declare_options
from procedures.groups.strategy import SelectionSettings, Strategy, check_strategy
from procedures.process.application import application
from procedures.selection.cube_defragmentation import CubeDefragmentation
from procedures.selection.delete_compaction import DeleteCompaction
from procedures.selection.file_list import FileList
from procedures.selection.latest_row_compaction import LatestRowCompaction
from procedures.selection.leveled_compaction import LeveledCompaction
from procedures.selection.revision_rewrite import RevisionRewrite
from procedures.selection.sampling_overhead import SamplingOverheadReduction
from procedures.selection.size_tiered_clustering import SizeTieredClustering
from procedures.selection.sorted_run_compaction import SortedRunCompaction
from procedures.selection.step_consolidation import StepConsolidation
from procedures.selection.unindexed_files import UnindexedFiles

DEFAULT_STRATEGIES = ("UnindexedFiles", "SortedRunCompaction")


def built_in_strategies() -> tuple[Strategy, ...]:
    """The strategies that every application has."""
    return (
        UnindexedFiles(),
        LeveledCompaction(),
        SortedRunCompaction(),
        CubeDefragmentation(),
        SamplingOverheadReduction(),
        RevisionRewrite(),
        FileList(),
        SizeTieredClustering(),
        DeleteCompaction(),
        LatestRowCompaction(),
        StepConsolidation(),
    )


_BUILT_IN = {strategy.name: strategy for strategy in built_in_strategies()}

# The options of strategies are table properties too.
for _strategy in _BUILT_IN.values():
    declare_options(option.name for option in _strategy.options)


def strategies() -> dict[str, Strategy]:
    """Returns the registered strategies by name."""
    return _BUILT_IN | application().own_strategies


def register_strategy(strategy: Strategy) -> None:
    """Makes a strategy available by its name; a later registration of the same name replaces the earlier one.

    Args:
        strategy: an instance of a subclass.

    Raises:
        InvalidArgumentError: not such an instance.
    """
    check_strategy(strategy)
    application().own_strategies[strategy.name] = strategy
    declare_options(option.name for option in strategy.options)


def strategy(name: str) -> Strategy:
    """Returns the strategy of this name or alias, any case.

    Raises:
        UnknownNameError: none of this name; the text gives the nearest match.
    """
    known = strategies()
    by_lower = {alias.lower(): registered for registered in known.values() for alias in registered.aliases}
    by_lower |= {known_name.lower(): registered for known_name, registered in known.items()}
    registered = by_lower.get(name.strip().lower())
    if registered is None:
        raise UnknownNameError.of("strategy", name.strip(), known)
    return registered


__all__ = [
    "DEFAULT_STRATEGIES",
    "SelectionSettings",
    "Strategy",
    "built_in_strategies",
    "register_strategy",
    "strategies",
    "strategy",
]
