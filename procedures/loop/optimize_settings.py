"""The arguments of ``optimize``, checked together before anything is looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from catalog.errors import InvalidArgumentError, UnknownNameError
from catalog.pruning.row_predicate import RowPredicate
from catalog.settings.setting import duration
from catalog.settings.strategy_options import DEFAULT_BYTES_PER_ITER, QUIET_DURATION
from catalog.state.plan_files import check_plan_id
from procedures.declare.option import option_value
from procedures.declare.signature import DETAILS
from procedures.groups.strategy import BATCH_OPTION
from procedures.loop.optimize_parameters import DEFAULT_ARGUMENTS
from procedures.selection import DEFAULT_STRATEGIES, SelectionSettings, Strategy, strategy
from procedures.selection.file_list import NAME as FILE_LIST
from procedures.selection.revision_rewrite import NAME as REVISION_REWRITE
from procedures.selection.unindexed_files import NAME as UNINDEXED_FILES

_NOT_WITH_PLAN = ("strategy", "bytes_per_iter", "where", "files", "revision_rewrite", "options", "quiet_period")
_NOT_OF_THE_RUN = ("table", DETAILS)
_DURATION = duration(
    "a positive duration such as '10 minutes' or '90 seconds'", units=("s", "m", "h", "d"), spark_syntax=False
)


@dataclass(frozen=True)
class OptimizeSettings:
    """What one call of ``optimize`` was asked to do.

    Attributes:
        strategies: in the order in which they are asked for files.
        selection: per strategy, what it is told.
        max_iterations: groups committed at most; None = no limit.
        max_bytes: once this many input bytes were rewritten, no further group starts; None = no limit.
        max_seconds: once this time is over, no further group starts; None = no limit.
        parallelism: groups rewritten at the same time.
        dry_run: plan only.
        parameters: the call's arguments as text, for the event.
        where: only files that may hold rows of it are chosen; None = all.
        files: only these files are chosen, as the caller spells them; None = all.
        plan: id of the stored plan whose groups are rewritten, in place of what strategies choose.
        groups: numbers of these groups; None = all that are not done.
        quiet_millis: files near statements of other sessions within this time are left alone; 0 = none are.
    """

    strategies: tuple[Strategy, ...]
    selection: Mapping[str, SelectionSettings]
    max_iterations: int | None
    max_bytes: int | None
    max_seconds: float | None
    parallelism: int
    dry_run: bool
    parameters: Mapping[str, str]
    where: RowPredicate | None = None
    files: tuple[str, ...] | None = None
    plan: str | None = None
    groups: tuple[int, ...] | None = None
    quiet_millis: int = 0

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> OptimizeSettings:
        """Checks the arguments of a call.

        Args:
            arguments: by name; a parameter that is missing has its default.

        Raises:
            InvalidArgumentError: a value out of its range.
            UnknownNameError: a strategy or option that does not exist.
        """
        arguments = {**DEFAULT_ARGUMENTS, **arguments}
        for name in ("bytes_per_iter", "max_iterations", "max_bytes", "parallelism"):
            value = arguments[name]
            if value is not None and value < 1:
                raise InvalidArgumentError.of(name, value, "a whole number of at least 1")
        revision_id = arguments["revision_id"]
        if revision_id is not None and revision_id < 0:
            raise InvalidArgumentError.of("revision_id", revision_id, "0 for unindexed files, or a revision's number")
        if revision_id == 0 and arguments["revision_rewrite"]:
            raise InvalidArgumentError.of("revision_id", 0, "with revision_rewrite, the number of an indexed revision")
        _check_plan(arguments)
        where, files, groups = arguments["where"], arguments["files"], arguments.get("groups")
        if files is not None and not files:
            raise InvalidArgumentError.of("files", "array()", "at least one file; leave it out for all")
        quiet_period = arguments["quiet_period"]
        if files is not None and quiet_period is not None:
            raise InvalidArgumentError.of(
                "quiet_period", quiet_period, "nothing together with files, all of which are rewritten"
            )
        predicate = None if where is None else RowPredicate.parse("where", where)
        strategies = _strategies(arguments)
        texts: dict[str, str] = dict(arguments["options"])
        known = {o.name for s in strategies for o in s.options}
        for name in texts:
            if name not in known:
                raise UnknownNameError.of("option", name, known)
        selection = {
            s.name: SelectionSettings(
                arguments["bytes_per_iter"] or DEFAULT_BYTES_PER_ITER,
                _revision_of(s, strategies, arguments),
                _options_of(s, texts, arguments["bytes_per_iter"]),
                None if files is None else tuple(files),
            )
            for s in strategies
        }
        for chosen in strategies:
            options = selection[chosen.name].options
            if files is None:
                chosen.check_options(options)
            else:
                chosen.check_named_files(files, texts, options)
        return cls(
            strategies=strategies,
            selection=selection,
            max_iterations=arguments["max_iterations"],
            max_bytes=arguments["max_bytes"],
            max_seconds=duration_seconds("max_duration", arguments["max_duration"]),
            parallelism=arguments["parallelism"],
            dry_run=arguments["dry_run"],
            parameters={
                k: str(v) for k, v in arguments.items() if v is not None and v != {} and k not in _NOT_OF_THE_RUN
            },
            where=predicate,
            files=None if files is None else tuple(files),
            plan=arguments.get("plan"),
            groups=None if groups is None else tuple(groups),
            quiet_millis=0 if quiet_period is None else int(QUIET_DURATION.parse("quiet_period", quiet_period)),
        )

    def within(self, group_bytes: int | None, max_bytes: int | None = None) -> OptimizeSettings:
        """The same for a run that may rewrite less.

        Args:
            group_bytes: bytes of a group after which no further file is taken; None = as before.
            max_bytes: once this many input bytes were rewritten, no further group starts; None = as before.
        """
        limited = replace(self, max_bytes=self.max_bytes if max_bytes is None else max_bytes)
        if group_bytes is None:
            return limited
        selection = {
            name: replace(
                asked, bytes_per_iter=min(asked.bytes_per_iter, group_bytes), budget_bytes=group_bytes
            ).with_batch_limit(group_bytes)
            for name, asked in self.selection.items()
        }
        return replace(limited, selection=selection)


def _check_plan(arguments: Mapping[str, Any]) -> None:
    """Checks the parameters of a call that executes a stored plan; other procedures do not have them."""
    plan, groups = arguments.get("plan"), arguments.get("groups")
    if plan is None:
        if groups is not None:
            raise InvalidArgumentError.missing("plan", "groups needs the plan that they are groups of")
        return
    check_plan_id(plan)
    for name in _NOT_WITH_PLAN:
        if arguments[name]:
            raise InvalidArgumentError.of(
                name, str(arguments[name]), "nothing together with plan, which names the files"
            )
    if arguments["revision_id"] is not None:
        raise InvalidArgumentError.of("revision_id", arguments["revision_id"], "nothing together with plan")
    if groups is not None and (not groups or min(groups) < 1 or len(set(groups)) != len(groups)):
        shown = f"array({', '.join(map(str, groups))})"
        raise InvalidArgumentError.of("groups", shown, "numbers of groups from 1 on, each once; leave it out for all")


def _strategies(arguments: Mapping[str, Any]) -> tuple[Strategy, ...]:
    text, revision_id, rewrite = arguments["strategy"], arguments["revision_id"], arguments["revision_rewrite"]
    files = arguments["files"]
    names = list(DEFAULT_STRATEGIES) if text is None else text.split(",")
    strategies = tuple(strategy(name) for name in names)
    if len({s.name for s in strategies}) != len(strategies):
        raise InvalidArgumentError.of("strategy", text, "each strategy once")
    if files is None and any(s.name == FILE_LIST for s in strategies):
        raise InvalidArgumentError.of("strategy", text, f"{FILE_LIST} needs the parameter files")
    if rewrite:
        return strategy(REVISION_REWRITE), *(s for s in strategies if s.name != REVISION_REWRITE)
    if text is None and files is not None:
        return (strategy(FILE_LIST),)
    if text is None and revision_id == 0:
        return (strategy(UNINDEXED_FILES),)
    return strategies


def _revision_of(chosen: Strategy, strategies: tuple[Strategy, ...], arguments: Mapping[str, Any]) -> int | None:
    """The revision that one of the strategies is to optimize."""
    number: int | None = arguments["revision_id"]
    if arguments["revision_rewrite"]:
        # The number says which revision is rewritten into the newest.
        return number if chosen.name == REVISION_REWRITE else None
    if number and chosen.name == UNINDEXED_FILES and len(strategies) > 1:
        # The number says which revision is compacted; unindexed files always join the newest.
        return None
    return number


def _options_of(chosen: Strategy, texts: Mapping[str, str], bytes_per_iter: int | None) -> dict[str, Any]:
    """The options of one of the strategies, complete.

    Args:
        chosen: the strategy.
        texts: options as text, by name.
        bytes_per_iter: as the caller gave it.

    Raises:
        InvalidArgumentError: a value does not fit its option, or contradicts ``bytes_per_iter``.
    """
    options = {option.name: option_value(option, texts.get(option.name)) for option in chosen.options}
    if BATCH_OPTION not in options or bytes_per_iter is None:
        return options
    if BATCH_OPTION not in texts:
        return {**options, BATCH_OPTION: bytes_per_iter}
    if options[BATCH_OPTION] > bytes_per_iter:
        accepted = f"at most bytes_per_iter = {bytes_per_iter}; leave one of the two out"
        raise InvalidArgumentError.of(BATCH_OPTION, options[BATCH_OPTION], accepted)
    return options


def duration_seconds(name: str, text: str | None) -> float | None:
    """Parses ``'10 minutes'``, ``'90s'`` and the like.

    Raises:
        InvalidArgumentError: not a positive duration.
    """
    return None if text is None else _DURATION.parse(name, text) / 1000
