"""What a table wishes of automatic optimization, checked against the strategies that there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from catalog.errors import InvalidArgumentError, UnknownNameError, UseError
from catalog.jvm.java_errors import known_error
from catalog.properties.names import unknown_property
from catalog.properties.optimization_properties import TYPE_KEY, OptimizationProperties, Triggers, option_key
from procedures.declaration import Parameter
from procedures.optimize import OPTIMIZE
from procedures.optimizer.optimize_settings import OptimizeSettings, option_value
from procedures.selection import strategies, strategy
from procedures.selection.revision_rewrite import NAME as REVISION_REWRITE


@dataclass(frozen=True)
class Wish:
    """A checked wish; two that are equal ask for the same.

    Attributes:
        strategies: names, in the order in which they are asked for files.
        arguments: those of ``use.optimize`` that a run of it has.
        triggers: what starts a run instead of the interval.
        parameters: the properties behind it, for events.
        note: one sentence for people, '' when there is nothing to say.
    """

    strategies: tuple[str, ...]
    arguments: Mapping[str, Any]
    triggers: Triggers
    parameters: Mapping[str, str]
    note: str = ""

    @classmethod
    def of_table(cls, configuration: Mapping[str, str]) -> Wish | None:
        """The wish of a table's properties; None when it has none.

        Raises:
            UseError: a property or value that is not accepted.
        """
        asked = OptimizationProperties.of(configuration, _options())
        return None if asked is None else cls._checked(asked)

    @classmethod
    def of_trigger(cls, given: Mapping[str, str]) -> Wish:
        """The wish of a manual trigger.

        Raises:
            UseError: a property or value that is not accepted.
        """
        return cls._checked(OptimizationProperties.of_trigger(given, _options()))

    @classmethod
    def _checked(cls, asked: OptimizationProperties) -> Wish:
        names = tuple(strategy(name).name for name in asked.strategies)
        _check_options((*names, REVISION_REWRITE) if asked.revision_rewrite else names, asked.options)
        arguments: dict[str, Any] = {p.name: None if p.required else p.default for p in OPTIMIZE.parameters}
        arguments |= {
            "strategy": ",".join(names),
            "bytes_per_iter": asked.bytes_per_iter,
            "revision_id": asked.revision_id,
            "revision_rewrite": asked.revision_rewrite,
            "options": dict(asked.options),
        }
        wish = cls(names, arguments, asked.triggers, dict(asked.asked), asked.note)
        wish.settings()
        return wish

    def settings(self) -> OptimizeSettings:
        """What a run of it does; made anew for each run, since strategies keep notes in it."""
        return replace(OptimizeSettings.of(self.arguments), parameters=self.parameters)


@dataclass(frozen=True)
class NoWish:
    """The properties of a table ask for no automatic optimization."""


@dataclass(frozen=True)
class RefusedWish:
    """The properties of a table ask for an optimization that is not accepted, and the reason."""

    error: UseError


def wish_of(configuration: Mapping[str, str]) -> Wish | RefusedWish | NoWish:
    """What the properties of a table ask for; never raises."""
    try:
        wish = Wish.of_table(configuration)
    except UseError as error:
        return RefusedWish(error)
    except Exception as error:  # noqa: BLE001 - strategies of others check their options too
        return RefusedWish(known_error(error))
    return NoWish() if wish is None else wish


def check_wish(configuration: Mapping[str, str]) -> None:
    """Checks what a table's properties ask for, options of strategies included, also while nothing is switched on.

    Properties that do not exist are left out.

    Raises:
        UseError: a strategy that does not exist, a value that is not accepted, or an option of no chosen strategy.
    """
    known = {key: value for key, value in configuration.items() if unknown_property(key) is None}
    if TYPE_KEY in known:
        for name in known[TYPE_KEY].split(","):
            strategy(name)
    for name, option in _options().items():
        if option_key(name) in known:
            _check_option(option, known[option_key(name)])
    Wish.of_table(known)


def _options() -> dict[str, Parameter]:
    return {option.name: option for known in strategies().values() for option in known.options}


def _check_options(names: tuple[str, ...], given: Mapping[str, str]) -> None:
    """Refuses options of other strategies and wrong values by the names of their properties."""
    declared = {option.name: option for name in names for option in strategy(name).options}
    for name, text in given.items():
        if name not in declared:
            raise UnknownNameError(
                f"The property {option_key(name)} is no option of {', '.join(names)}: unset it, or choose a strategy "
                "that has it.",
                code="USE_UNKNOWN_PROPERTY",
            )
        _check_option(declared[name], text)


def _check_option(option: Parameter, text: str) -> None:
    try:
        option_value(option, text)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{option_key(option.name)}: {error.message}") from error
