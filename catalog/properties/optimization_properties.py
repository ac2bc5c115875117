"""What the properties of a table ask of automatic optimization: two families of keys, one result."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from catalog.errors import InvalidArgumentError, NotSupportedError, UnknownNameError, UseError
from catalog.properties.index_properties import COLUMNS_KEY
from catalog.properties.lifecycle_properties import lifecycle_policies
from catalog.properties.option_properties import options_given, properties_of
from catalog.settings.setting import AT_LEAST_ONE, BOOLEAN, SHARE, Setting, names_of, whole_number
from catalog.settings.strategy_options import (
    BATCH_BYTES,
    DEFAULT_BYTES_PER_ITER,
    FROM_TIMESTAMP,
    QUIET_DURATION,
    STEP_OPTIONS,
)
from otree.revision import LAST_REVISION_KEY

PREFIX = "use.optimization."
TYPE_KEY = f"{PREFIX}type"
BYTES_PER_ITER_KEY = f"{PREFIX}bytes-per-iter"
REVISION_REWRITE_KEY = f"{PREFIX}revision-rewrite"
REVISION_ID_KEY = f"{PREFIX}revision-id"

_AUTO = f"{PREFIX}autoOptimize."
AUTO_ENABLED_KEY = f"{_AUTO}enabled"
AUTO_REVISION_ID_KEY = f"{_AUTO}revisionId"
MERGE_RUNS_ENABLED_KEY = f"{_AUTO}mergeSortedRuns.enabled"

_OF_UNINDEXED = f"{_AUTO}optimizeUnindexedFiles."
UNINDEXED_ENABLED_KEY = f"{_OF_UNINDEXED}enabled"
UNINDEXED_PRIORITIZE_KEY = f"{_OF_UNINDEXED}prioritize"

_STEPS = f"{_AUTO}stepConsolidation."
STEPS_ENABLED_KEY = f"{_STEPS}enabled"

TARGET_READ_COST_KEY = f"{PREFIX}targetReadCost"
MAX_WRITE_AMPLIFICATION_KEY = f"{PREFIX}maxWriteAmplification"
QUIET_PERIOD_KEY = f"{PREFIX}quietPeriod"

TRIGGER_COMMITS_KEY = f"{PREFIX}trigger.commits"
TRIGGER_UNINDEXED_BYTES_KEY = f"{PREFIX}trigger.unindexed-bytes"
TRIGGER_UNINDEXED_SHARE_KEY = f"{PREFIX}trigger.unindexed-share"
TRIGGER_SMALL_FILES_KEY = f"{PREFIX}trigger.small-files"

TYPE = Setting(
    TYPE_KEY,
    names_of("a strategy, or several separated by commas"),
    "The strategies that are asked for files, in this order; it switches automatic optimization on.",
)
BYTES_PER_ITER = Setting(
    BYTES_PER_ITER_KEY,
    whole_number(1),
    "Bytes of files taken in an iteration.",
    unset=f"{DEFAULT_BYTES_PER_ITER}; {BATCH_BYTES.default} for UnindexedFiles and RevisionRewrite",
)
REVISION_REWRITE = Setting(
    REVISION_REWRITE_KEY,
    BOOLEAN,
    "Indexes older revisions, or the one of revision-id, again into the newest.",
    "false",
)
REVISION_ID = Setting(REVISION_ID_KEY, whole_number(0), "Revision to optimize.", unset="the newest")

AUTO_ENABLED = Setting(AUTO_ENABLED_KEY, BOOLEAN, "Switches automatic optimization on or off.")
AUTO_REVISION_ID = Setting(
    AUTO_REVISION_ID_KEY, whole_number(0), "Revision to compact; 0: unindexed files only.", unset="the newest"
)
UNINDEXED_ENABLED = Setting(UNINDEXED_ENABLED_KEY, BOOLEAN, "Also indexes unindexed files.", "true")
UNINDEXED_PRIORITIZE = Setting(UNINDEXED_PRIORITIZE_KEY, BOOLEAN, "Takes unindexed files before it compacts.", "true")
MERGE_RUNS_ENABLED = Setting(
    MERGE_RUNS_ENABLED_KEY,
    BOOLEAN,
    "Compacts by SortedRunCompaction, which keeps reads at a target; `false`: by LeveledCompaction.",
    "true",
)
_UNINDEXED_PROPERTIES = properties_of(_OF_UNINDEXED, BATCH_BYTES, FROM_TIMESTAMP)

STEPS_ENABLED = Setting(
    STEPS_ENABLED_KEY,
    BOOLEAN,
    "Also runs StepConsolidation, after the others; alone in a table without index columns.",
    "false",
)
_STEP_PROPERTIES = properties_of(_STEPS, *STEP_OPTIONS)

TARGET_READ_COST = Setting(
    TARGET_READ_COST_KEY,
    AT_LEAST_ONE,
    "What reads may cost in proportion to a fresh layout; SortedRunCompaction merges nothing below it.",
    "1.25",
)
MAX_WRITE_AMPLIFICATION = Setting(
    MAX_WRITE_AMPLIFICATION_KEY,
    AT_LEAST_ONE,
    "How many times SortedRunCompaction lets a row be rewritten, on average over the newest revision.",
    "4",
)
QUIET_PERIOD = Setting(
    QUIET_PERIOD_KEY,
    QUIET_DURATION,
    "Time after a DELETE, UPDATE or MERGE in which automatic runs do not rewrite files that the next one is likely to "
    "read; 0: they rewrite any file.",
    "10 minutes",
)

TRIGGER_COMMITS = Setting(
    TRIGGER_COMMITS_KEY, whole_number(1), "A run starts after so many commits since the last optimization."
)
TRIGGER_UNINDEXED_BYTES = Setting(
    TRIGGER_UNINDEXED_BYTES_KEY, whole_number(1), "A run starts when unindexed files hold so many bytes."
)
TRIGGER_UNINDEXED_SHARE = Setting(
    TRIGGER_UNINDEXED_SHARE_KEY, SHARE, "A run starts when unindexed files hold this share of the table's bytes."
)
TRIGGER_SMALL_FILES = Setting(
    TRIGGER_SMALL_FILES_KEY,
    whole_number(1),
    "A run starts when so many files are below half of use.index.targetFileBytes.",
)

_OLDER = (TYPE, BYTES_PER_ITER, REVISION_REWRITE, REVISION_ID)
_NEWER = (
    AUTO_ENABLED,
    AUTO_REVISION_ID,
    UNINDEXED_ENABLED,
    UNINDEXED_PRIORITIZE,
    *_UNINDEXED_PROPERTIES.values(),
    MERGE_RUNS_ENABLED,
    STEPS_ENABLED,
    *_STEP_PROPERTIES.values(),
)
_TRIGGERS = (TRIGGER_COMMITS, TRIGGER_UNINDEXED_BYTES, TRIGGER_UNINDEXED_SHARE, TRIGGER_SMALL_FILES)
OPTIMIZATION_SETTINGS: tuple[Setting[object], ...] = (
    *_OLDER,
    *_NEWER,
    TARGET_READ_COST,
    MAX_WRITE_AMPLIFICATION,
    QUIET_PERIOD,
    *_TRIGGERS,
)
OLDER_FAMILY = tuple(setting.name for setting in _OLDER)
NEWER_FAMILY = tuple(setting.name for setting in _NEWER)
TRIGGERS = tuple(setting.name for setting in _TRIGGERS)

# What both families have.
_SHARED = (TARGET_READ_COST_KEY, MAX_WRITE_AMPLIFICATION_KEY, QUIET_PERIOD_KEY, *TRIGGERS)

_UNINDEXED, _COMPACTION, _MERGES = "UnindexedFiles", "LeveledCompaction", "SortedRunCompaction"
_CONSOLIDATION = "StepConsolidation"


@dataclass(frozen=True)
class Triggers:
    """What starts a run instead of the interval; None = not asked for.

    Attributes:
        commits: commits since the last optimization.
        unindexed_bytes: bytes in unindexed files.
        unindexed_share: their share of the table's bytes, in (0, 1].
        small_files: files under half the target file size.
    """

    commits: int | None = None
    unindexed_bytes: int | None = None
    unindexed_share: float | None = None
    small_files: int | None = None

    @property
    def any(self) -> bool:
        """Whether one is asked for."""
        return self != Triggers()

    @property
    def of_files(self) -> bool:
        """Whether one is asked for that needs a look at the table's files."""
        return self.any and self != Triggers(commits=self.commits)


@dataclass(frozen=True)
class OptimizationProperties:
    """What a table asks for.

    Attributes:
        strategies: names, in the order in which they are asked for files.
        bytes_per_iter: bytes to optimize in an iteration, None = the default of ``use.optimize``.
        revision_id: revision to optimize, None = the newest.
        revision_rewrite: whether older revisions are indexed again into the newest.
        options: options of the strategies as text, by the name that the strategy declares.
        triggers: what starts a run.
        asked: the properties that count, as they are written.
        note: one sentence for people, '' when there is nothing to say.
    """

    strategies: tuple[str, ...]
    bytes_per_iter: int | None = None
    revision_id: int | None = None
    revision_rewrite: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    triggers: Triggers = Triggers()
    asked: Mapping[str, str] = field(default_factory=dict)
    note: str = ""

    @classmethod
    def of(cls, configuration: Mapping[str, str], options: Collection[str]) -> OptimizationProperties | None:
        """Reads a table's properties; None when it asks for no automatic optimization.

        Args:
            configuration: all properties of the table.
            options: names of the options that strategies declare.

        Raises:
            InvalidArgumentError: a value that is not accepted.
            UnknownNameError: a property below ``use.optimization.`` that does not exist.
        """
        ours = {key: value for key, value in configuration.items() if key.startswith(PREFIX)}
        _check_keys(ours, (*OLDER_FAMILY, *NEWER_FAMILY, *_SHARED), options)
        TARGET_READ_COST.value(ours)
        MAX_WRITE_AMPLIFICATION.value(ours)
        QUIET_PERIOD.value(ours)
        triggers = _triggers(ours)
        if AUTO_ENABLED_KEY in ours:
            # The newer family decides, also where it says no.
            indexed = has_index(configuration)
            return _newer(ours, triggers, indexed=indexed) if AUTO_ENABLED.optional_value(ours) else None
        return None if TYPE_KEY not in ours else _older(ours, triggers)

    @classmethod
    def of_trigger(cls, properties: Mapping[str, str], options: Collection[str]) -> OptimizationProperties:
        """Reads what a manual trigger asks for: keys of the older family and options of strategies.

        Raises:
            InvalidArgumentError: a value that is not accepted, or no type.
            UnknownNameError: a key that does not exist, or is not for a manual trigger.
            NotSupportedError: a property of another kind.
        """
        outside = sorted(key for key in properties if not key.startswith(PREFIX))
        if outside:
            raise NotSupportedError(
                f"ALTER TABLE of {', '.join(outside)} is not available here: a manual trigger takes keys below "
                f"{PREFIX} and changes no property. Use the table's own name."
            )
        automatic = sorted(key for key in properties if key in (*NEWER_FAMILY, *_SHARED))
        if automatic:
            raise NotSupportedError(
                f"{', '.join(automatic)} is not available here: it configures automatic optimization, and a manual "
                f"trigger takes {', '.join(OLDER_FAMILY)} and options of strategies. Use the table's own name."
            )
        _check_keys(properties, OLDER_FAMILY, options)
        if TYPE_KEY not in properties:
            raise InvalidArgumentError.missing(TYPE_KEY, "a manual trigger names a strategy, or an ordered list")
        return _older(properties, Triggers())


def option_key(option: str) -> str:
    """The property of a strategy's option: ``batch_bytes`` is ``use.optimization.batch-bytes``."""
    return PREFIX + option.replace("_", "-")


def effective_type(configuration: Mapping[str, str]) -> str | None:
    """The strategies that automatic optimization runs on a table, separated by commas; None when it is off.

    Wrong values elsewhere do not matter here: what is asked for is shown, also where it cannot be done.
    """
    optimization = _effective_optimization(configuration)
    try:
        policies = [policy.strategy for policy in lifecycle_policies(configuration)]
    except UseError:
        policies = []
    return ",".join([*([optimization] if optimization is not None else []), *policies]) or None


def _effective_optimization(configuration: Mapping[str, str]) -> str | None:
    enabled = configuration.get(AUTO_ENABLED_KEY)
    if enabled is None:
        return configuration.get(TYPE_KEY)
    if enabled.strip().lower() != "true":
        return None
    try:
        return ",".join(_newer(configuration, Triggers(), indexed=has_index(configuration)).strategies)
    except UseError:
        return f"{_UNINDEXED},{_MERGES}"


def has_index(configuration: Mapping[str, str]) -> bool:
    """Whether a table has index columns, or a revision that names them."""
    return COLUMNS_KEY in configuration or LAST_REVISION_KEY in configuration


def _check_keys(properties: Mapping[str, str], known: Collection[str], options: Collection[str]) -> None:
    accepted = {*known, *(option_key(option) for option in options)}
    for key in properties:
        if key not in accepted:
            raise UnknownNameError.of("property", key, accepted)


def _older(properties: Mapping[str, str], triggers: Triggers) -> OptimizationProperties:
    names = TYPE.value(properties)
    options = {
        key.removeprefix(PREFIX).replace("-", "_"): value
        for key, value in properties.items()
        if key.startswith(PREFIX) and key not in (*OLDER_FAMILY, *NEWER_FAMILY, *_SHARED)
    }
    return OptimizationProperties(
        strategies=names,
        bytes_per_iter=BYTES_PER_ITER.optional_value(properties),
        revision_id=REVISION_ID.optional_value(properties),
        revision_rewrite=REVISION_REWRITE.value(properties),
        options=options,
        triggers=triggers,
        asked={key: value for key, value in properties.items() if key not in NEWER_FAMILY},
    )


def _newer(properties: Mapping[str, str], triggers: Triggers, *, indexed: bool) -> OptimizationProperties:
    revision_id = AUTO_REVISION_ID.optional_value(properties)
    unindexed = UNINDEXED_ENABLED.value(properties)
    first = UNINDEXED_PRIORITIZE.value(properties)
    merges = MERGE_RUNS_ENABLED.value(properties)
    if revision_id == 0 and not unindexed:
        raise InvalidArgumentError.of(
            UNINDEXED_ENABLED_KEY, "false", f"with {AUTO_REVISION_ID_KEY} = 0, nothing would be optimized"
        )
    compaction = _MERGES if merges else _COMPACTION
    strategies: tuple[str, ...] = (_UNINDEXED, compaction) if first else (compaction, _UNINDEXED)
    if revision_id == 0:
        strategies = (_UNINDEXED,)
    elif not unindexed:
        strategies = (compaction,)
    consolidates = STEPS_ENABLED.value(properties)
    if consolidates:
        strategies = (*(strategies if indexed else ()), _CONSOLIDATION)
    unindexed_options = options_given(_UNINDEXED_PROPERTIES, properties)
    chosen: dict[str, str] = {}
    if _UNINDEXED in strategies:
        # Without it, a batch would be as large as bytes_per_iter.
        chosen = {BATCH_BYTES.name: str(BATCH_BYTES.default), **unindexed_options}
    if consolidates:
        chosen |= options_given(_STEP_PROPERTIES, properties)
    passed_over = sorted(k for k in properties if k.startswith(PREFIX) and k not in (*NEWER_FAMILY, *_SHARED))
    return OptimizationProperties(
        strategies=strategies,
        revision_id=revision_id,
        options=chosen,
        triggers=triggers,
        asked={key: properties[key] for key in (*NEWER_FAMILY, *_SHARED) if key in properties},
        note=f"{AUTO_ENABLED_KEY} is set and wins: {', '.join(passed_over)} do not count" if passed_over else "",
    )


def _triggers(properties: Mapping[str, str]) -> Triggers:
    return Triggers(
        commits=TRIGGER_COMMITS.optional_value(properties),
        unindexed_bytes=TRIGGER_UNINDEXED_BYTES.optional_value(properties),
        unindexed_share=TRIGGER_UNINDEXED_SHARE.optional_value(properties),
        small_files=TRIGGER_SMALL_FILES.optional_value(properties),
    )
