"""Schedules: the checked properties of automatic optimization."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from catalog.errors import IndexConfigurationError, InvalidArgumentError, UnknownNameError, UseError
from catalog.jvm.java_errors import known_error
from catalog.properties.alert_properties import AlertPolicy, alert_policy
from catalog.properties.column_choice import ColumnChoicePolicy, column_choice_policy
from catalog.properties.fleet_properties import FLEET_HOURS, pool_of
from catalog.properties.hours import Hours
from catalog.properties.insight_properties import InsightsPolicy, insights_policy
from catalog.properties.lifecycle_properties import Pace, Policy, lifecycle_policies
from catalog.properties.log_properties import LogPolicy, log_policy
from catalog.properties.names import unknown_property
from catalog.properties.optimization_properties import (
    QUIET_PERIOD,
    QUIET_PERIOD_KEY,
    TYPE_KEY,
    OptimizationProperties,
    Triggers,
    has_index,
    option_key,
)
from catalog.properties.retention_properties import RetentionPolicy, retention_policy
from otree.revision import stored_revisions
from procedures.declare.option import option_value
from procedures.declare.signature import Parameter
from procedures.loop.optimize_settings import OptimizeSettings
from procedures.selection import strategies, strategy
from procedures.selection.latest_row_compaction import NAME as LATEST_ROW_COMPACTION
from procedures.selection.revision_rewrite import NAME as REVISION_REWRITE

RECLAMATION, LOG_CONSOLIDATION, HEALTH_CHECK = "Reclamation", "LogConsolidation", "HealthCheck"
INSIGHTS, COLUMN_CHOICE = "Insights", "ColumnChoice"


@dataclass(frozen=True)
class Schedule:
    """A checked specification of optimizations, from the properties of a table or from a manual trigger.

    Attributes:
        strategies: names, in order of priority.
        arguments: arguments of ``use.optimize`` for each run.
        triggers: conditions that start a run in place of the interval.
        parameters: the properties that it comes from, for events.
        note: one sentence for display; '' if none.
        paces: how often strategies run that do not run each time, by name.
        retention: the history to reclaim; None for none.
        log: how often the log is consolidated; None for never.
        alerts: thresholds of health for alerts; None for none.
        insights: records of commits and queries to keep; None for none.
        hours: when runs may start; None for the whole day.
        column_choice: how index columns are chosen; None if the owner names them, or wants none.
    """

    strategies: tuple[str, ...]
    arguments: Mapping[str, Any]
    triggers: Triggers
    parameters: Mapping[str, str]
    note: str = ""
    paces: Mapping[str, Pace] = field(default_factory=dict)
    retention: RetentionPolicy | None = None
    log: LogPolicy | None = None
    alerts: AlertPolicy | None = None
    insights: InsightsPolicy | None = None
    hours: Hours | None = None
    column_choice: ColumnChoicePolicy | None = None

    @classmethod
    def of_table(cls, configuration: Mapping[str, str]) -> Schedule | None:
        """Returns the schedule in a table's properties; None if automatic optimization is off.

        Raises:
            UseError: a property or value is invalid.
        """
        pool_of(None, configuration)  # only checked: the budget of many tables is no part of a schedule
        properties = OptimizationProperties.of(configuration, _options())
        policies = lifecycle_policies(configuration)
        retention, log = retention_policy(configuration), log_policy(configuration)
        insights, alerts = insights_policy(configuration), alert_policy(configuration)
        column_choice = column_choice_policy(configuration)
        more = tuple(policy for policy in (retention, log, insights, alerts, column_choice) if policy is not None)
        if properties is None and not policies and not more:
            return None
        quiet_period = configuration.get(QUIET_PERIOD_KEY, QUIET_PERIOD.default)
        schedule = cls._checked(properties or OptimizationProperties(()), policies, quiet_period)
        asked = {key: text for policy in more for key, text in policy.asked.items()}
        return replace(
            schedule,
            retention=retention,
            log=log,
            insights=insights,
            alerts=alerts,
            column_choice=column_choice,
            hours=FLEET_HOURS.optional_value(configuration),
            parameters={**schedule.parameters, **asked},
        )

    @classmethod
    def of_trigger(cls, properties: Mapping[str, str]) -> Schedule:
        """Returns the schedule of a manual trigger.

        Raises:
            UseError: a property or value is invalid.
        """
        return cls._checked(OptimizationProperties.of_trigger(properties, _options()))

    @classmethod
    def _checked(
        cls, properties: OptimizationProperties, policies: Sequence[Policy] = (), quiet_period: str | None = None
    ) -> Schedule:
        asked = tuple(strategy(name).name for name in properties.strategies)
        _check_options((*asked, REVISION_REWRITE) if properties.revision_rewrite else asked, properties.options)
        # A strategy that the owner lists runs each time, with the options of that list.
        policies = [policy for policy in policies if policy.strategy not in asked]
        names = (*asked, *(policy.strategy for policy in policies))
        options = {name: text for policy in policies for name, text in policy.options.items()}
        arguments = {
            "strategy": ",".join(names),
            "bytes_per_iter": properties.bytes_per_iter,
            "revision_id": properties.revision_id,
            "revision_rewrite": properties.revision_rewrite,
            "options": {**options, **properties.options},
            "quiet_period": quiet_period,
        }
        parameters = {**properties.asked, **{key: value for policy in policies for key, value in policy.asked.items()}}
        paces = {policy.strategy: policy.pace for policy in policies}
        schedule = cls(names, arguments, properties.triggers, parameters, properties.note, paces)
        if names:
            schedule.settings()
        return schedule

    @property
    def names(self) -> tuple[str, ...]:
        """The strategies and the maintenance, for display."""
        return (*self.strategies, *self.maintenance)

    @property
    def maintenance(self) -> tuple[str, ...]:
        """The maintenance that the service does in addition to optimizations, in its order."""
        return tuple(self.maintenance_paces)

    @property
    def maintenance_paces(self) -> dict[str, Pace]:
        """How often the service does each maintenance; history ages without commits."""
        paces = {
            # Before reclamation, which shortens the log.
            INSIGHTS: None if self.insights is None else self.insights.pace,
            RECLAMATION: None if self.retention is None else Pace(self.retention.interval),
            LOG_CONSOLIDATION: None if self.log is None else self.log.pace,
            HEALTH_CHECK: None if self.alerts is None else Pace(self.alerts.interval),
            COLUMN_CHOICE: None if self.column_choice is None else self.column_choice.pace,
        }
        return {name: pace for name, pace in paces.items() if pace is not None}

    @property
    def asked(self) -> frozenset[str]:
        """The strategies that the owner asks for whatever reads save, and whose plans compare rows."""
        return frozenset({LATEST_ROW_COMPACTION}.intersection(self.strategies))

    @property
    def removes(self) -> bool:
        """Whether rows or former versions are removed, as the properties of the table ask for."""
        return self.retention is not None or bool(self.asked)

    def settings(self) -> OptimizeSettings:
        """Returns the settings of a run."""
        return replace(OptimizeSettings.of(self.arguments), parameters=self.parameters)

    def only(self, names: Collection[str]) -> Schedule:
        """Returns the schedule of a run with some of the strategies and their options."""
        chosen = tuple(name for name in self.strategies if name in names)
        if chosen == self.strategies:
            return self
        if not chosen:
            return replace(self, strategies=())
        declared = {option.name for name in chosen for option in strategy(name).options}
        options = {name: text for name, text in self.arguments["options"].items() if name in declared}
        each_time = frozenset(self.strategies).difference(self.paces)
        # What the owner asks for has turns of its own; older revisions are no part of them if there are others.
        rewriting = each_time.difference(self.asked) or each_time
        rewrites = self.arguments["revision_rewrite"] and not rewriting.isdisjoint(chosen)
        arguments = {
            **self.arguments,
            "strategy": ",".join(chosen),
            "options": options,
            "revision_rewrite": rewrites,
        }
        return replace(self, strategies=chosen, arguments=arguments)


@dataclass(frozen=True)
class NoSchedule:
    """The properties of a table do not turn on automatic optimization."""


@dataclass(frozen=True)
class InvalidSchedule:
    """The properties of automatic optimization are invalid, with the error."""

    error: UseError


def schedule_of(configuration: Mapping[str, str]) -> Schedule | InvalidSchedule | NoSchedule:
    """Returns the schedule in a table's properties; never raises an error."""
    try:
        schedule = Schedule.of_table(configuration)
    except UseError as error:
        return InvalidSchedule(error)
    except Exception as error:  # noqa: BLE001 - custom strategies check their options too
        return InvalidSchedule(known_error(error))
    return NoSchedule() if schedule is None else schedule


def check_schedule(configuration: Mapping[str, str]) -> None:
    """Checks the properties of automatic optimization, including options, even while it is turned off.

    Unknown properties are ignored.

    Raises:
        UseError: a strategy is unknown, a value is invalid, or no chosen strategy has an option.
    """
    known = {key: value for key, value in configuration.items() if unknown_property(key) is None}
    if TYPE_KEY in known:
        for name in known[TYPE_KEY].split(","):
            strategy(name)
    for name, option in _options().items():
        if option_key(name) in known:
            _check_option(option, known[option_key(name)])
    Schedule.of_table(known)


def check_index_of_schedule(configuration: Mapping[str, str]) -> None:
    """Checks that the index exists which the properties of automatic optimization are about.

    The service would otherwise fail in every interval.

    Args:
        configuration: the properties of a table, accepted by ``check_schedule``.

    Raises:
        IndexConfigurationError: a strategy needs index columns, and the table has none.
        UnknownNameError: the table has no revision of the number.
    """
    known = {key: value for key, value in configuration.items() if unknown_property(key) is None}
    properties = OptimizationProperties.of(known, _options())
    if properties is None:
        return
    needing = [name for name in properties.strategies if strategy(name).needs_index_columns]
    if needing and not has_index(known):
        raise IndexConfigurationError.missing_for(strategy(needing[0]).name)
    number = properties.revision_id
    revisions = stored_revisions(configuration).numbers
    if number and number not in revisions:
        raise UnknownNameError.of("revision", str(number), [str(n) for n in sorted(revisions) if n > 0])


def _options() -> dict[str, Parameter]:
    return {option.name: option for known in strategies().values() for option in known.options}


def _check_options(names: tuple[str, ...], options: Mapping[str, str]) -> None:
    """Rejects options of other strategies and invalid values; errors name the properties."""
    declared = {option.name: option for name in names for option in strategy(name).options}
    for name, text in options.items():
        if name not in declared:
            raise UnknownNameError(
                f"The property {option_key(name)} is not an option of {', '.join(names)}: unset it, or choose a "
                "strategy that has it.",
                code="USE_UNKNOWN_PROPERTY",
            )
        _check_option(declared[name], text)


def _check_option(option: Parameter, text: str) -> None:
    try:
        option_value(option, text)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{option_key(option.name)}: {error.message}") from error
