"""What is set on a table, what is not, and what to do first; the findings are pure functions of the facts."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from catalog.counted_nouns import agreeing, counted
from catalog.errors import InvalidArgumentError, UseError
from catalog.jvm.log_probe import qualifier
from catalog.properties.index_properties import AUTO_PERIOD_KEY, COLUMNS_KEY
from catalog.properties.insight_properties import CONSUMPTION_ENABLED, INGESTION_ENABLED
from catalog.properties.log_properties import LOG_INTERVAL, log_policy
from catalog.properties.optimization_properties import AUTO_ENABLED_KEY
from catalog.properties.retention_properties import (
    DELTA_LOG_RETENTION,
    RETENTION_HOURS,
    floor_hours_of,
    retention_policy,
)
from catalog.quantities import share_text, size_text
from catalog.state.automation import SUSPENDED
from catalog.table.managed_table import ManagedTable
from procedures.insight.health.diagnosis import health_rows
from procedures.insight.health.health import diagnosis_of
from procedures.insight.health.remedy import AdviceStep
from procedures.process.application import application
from procedures.service.watched_tables import SparkTables
from sql_ext.commands.doctor_checks.finding import FAIL, OK, WARN, Finding
from sql_ext.commands.output import Row
from sql_ext.commands.session_overview import overview

# Below this score, the health of a table is a warning.
_HEALTHY = 80
# Unindexed files are normal up to this share of the bytes.
_UNINDEXED_SHARE = 0.05
_LOG_PART = "log_length"
_MILLIS_PER_DAY = 86_400_000


@dataclass(frozen=True)
class TableFacts:
    """What is known about a table.

    Attributes:
        name: name for SQL statements.
        options: the options of commands that name the table, such as ``--warehouse wh --table t``.
        overview: the row of ``overview``.
        health: rows of ``use.health``, the total first.
        configuration: properties of the table.
        errors: what is wrong with them.
        write_error: why no file can be written below the table; None if files can be written.
        steps: what the adviser says to do, in order.
        is_listed: whether the catalog has a table at its location, so that a service of the catalog finds it.
    """

    name: str
    options: str
    overview: Row
    health: Sequence[Row]
    configuration: Mapping[str, str]
    errors: Sequence[str]
    write_error: str | None = None
    steps: Sequence[AdviceStep] = ()
    is_listed: bool = True

    @classmethod
    def of(cls, spark: SparkSession, name: str, warehouse: Path | None = None) -> TableFacts:
        """Reads the facts from the metadata of a table, and writes and deletes an empty file below it.

        Args:
            spark: an attached session.
            name: name or path of the table.
            warehouse: as the command's option names it.

        Raises:
            TableError: there is no such table.
        """
        table = ManagedTable.find(spark, name)
        write_error = None
        try:
            table.check_writable()
        except UseError as error:
            write_error = f"{error.code}: {error.message}"
        snapshot = table.snapshot()
        diagnosis = diagnosis_of(table, application().clock)
        return cls(
            name=f"delta.`{name}`" if name.startswith("/") or ":/" in name.split("`", maxsplit=1)[0] else name,
            options=options_of(name, warehouse),
            overview=overview(table),
            health=[asdict(row) for row in health_rows(diagnosis)],
            configuration=snapshot.settings,
            errors=[error.message for error in snapshot.property_errors],
            write_error=write_error,
            steps=diagnosis.steps,
            is_listed=qualifier(spark)(table.location) in SparkTables(spark).listed(),
        )


def options_of(name: str, warehouse: Path | None) -> str:
    """Returns the options of commands that name a table.

    Args:
        name: name or path of the table.
        warehouse: as the command's option names it; None without this option.
    """
    place = "" if warehouse is None else f"--warehouse {shlex.quote(str(warehouse))} "
    return f"{place}--table {shlex.quote(name)}"


def table_findings(facts: TableFacts) -> list[Finding]:
    """Returns the findings about a table; the last one says what to do first.

    Args:
        facts: what is known about the table.
    """
    findings = [*_findings(facts)]
    return [*findings, _first(facts, findings)]


def _first(facts: TableFacts, findings: Sequence[Finding]) -> Finding:
    """What blocks everything, then the adviser's first step, then what else is not as it should be."""
    failed = next((finding for finding in findings if finding.state == FAIL), None)
    warned = next((finding for finding in findings if finding.state == WARN), None)
    if failed is None and facts.steps:
        step = facts.steps[0]
        saved = "" if step.saved_bytes is None else f" A read saves about {size_text(step.saved_bytes)}."
        return Finding("first", WARN, f"{step.reason}{saved}", step.statement)
    finding = failed or warned
    if finding is None:
        return Finding("first", OK, "nothing to do")
    return Finding("first", finding.state, f"{finding.check}: {finding.message}", finding.advice)


def _findings(facts: TableFacts) -> Iterator[Finding]:
    row = facts.overview
    nouns = (agreeing(row["files"], "file", "files"), agreeing(row["rows"], "row", "rows"))
    files = f"{row['files']:,} {nouns[0]}, {row['rows']:,} {nouns[1]}, {size_text(row['bytes'])}"
    yield Finding("table", OK, f"{row['name']}, version {row['version']}: {files}")
    if facts.write_error is None:
        yield Finding("write access", OK, f"files can be written below {row['location']}")
    else:
        advice = "allow this user to write there: optimize, vacuum and events need it"
        yield Finding("write access", FAIL, facts.write_error, advice)
    for error in facts.errors[:1]:
        more = f" ({len(facts.errors) - 1} more)" if len(facts.errors) > 1 else ""
        yield Finding("properties", FAIL, f"{error}{more}", f"ALTER TABLE {facts.name} SET or UNSET TBLPROPERTIES")
    yield from _index(facts)
    yield _health(facts)
    yield _automatic(facts)
    yield _retention(facts)
    yield _insights(facts)
    yield _log(facts)


def _index(facts: TableFacts) -> Iterator[Finding]:
    row = facts.overview
    if not row["index_columns"]:
        advice = f"use-spark recommend {facts.options} measures whether one saves bytes"
        is_automatic = AUTO_PERIOD_KEY in facts.configuration
        reason = "the service has not chosen columns yet" if is_automatic else f"{COLUMNS_KEY} is not set"
        yield Finding("index", OK, f"none: {reason}", advice)
        return
    columns = ", ".join(row["index_columns"])
    yield Finding("index", OK, f"{columns}; {counted(row['revisions'], 'revision')}")
    share = row["unindexed_bytes"] / row["bytes"] if row["bytes"] else 0.0
    text = f"{counted(row['unindexed_files'], 'file')}, {share_text(share, 0)} of the bytes"
    yield Finding("unindexed", WARN if share > _UNINDEXED_SHARE else OK, text)


def _health(facts: TableFacts) -> Finding:
    total, *parts = facts.health
    worst = max(parts, key=lambda part: part["points_lost"], default=None)
    text = f"{total['value']:.0f} of 100 points"
    if worst is not None and worst["points_lost"]:
        text += f"; {worst['part'].replace('_', ' ')} takes {worst['points_lost']:g}"
    steps = "; ".join(step.statement for step in facts.steps)
    return Finding("health", OK if total["value"] >= _HEALTHY else WARN, text, steps or None)


def _automatic(facts: TableFacts) -> Finding:
    automatic = facts.overview["automatic"]
    if automatic["state"] == SUSPENDED:
        return Finding("automatic", WARN, "suspended", f"use-spark resume {facts.options}")
    service = f"use-spark service {facts.options}, or register it: CREATE TABLE … USING delta LOCATION …"
    if automatic["type"] is None:
        advice = _set(facts, AUTO_ENABLED_KEY, "true")
        advice = advice if facts.is_listed else f"{advice}, then {service}"
        return Finding("automatic", WARN, f"automatic optimization is off{_unlisted(facts)}", advice)
    if not facts.is_listed:
        return Finding("automatic", WARN, f"{automatic['type']} is on{_unlisted(facts)}", service)
    return Finding("automatic", OK, f"{automatic['state']}: {automatic['type']}; needs a running service")


def _unlisted(facts: TableFacts) -> str:
    return "" if facts.is_listed else "; it is known by its path only, so a service of the catalog does not find it"


def _retention(facts: TableFacts) -> Finding:
    days = floor_hours_of(facts.configuration) / 24
    try:
        log_days = DELTA_LOG_RETENTION.value(facts.configuration) / _MILLIS_PER_DAY
        policy = retention_policy(facts.configuration)
    except InvalidArgumentError as error:
        return Finding("retention", WARN, error.message)
    text = f"removed files {days:g} days, log {log_days:g} days"
    if policy is None:
        advice = f"run use-spark vacuum {facts.options} now and then, or {_set(facts, RETENTION_HOURS.name, '720')}"
        return Finding("retention", WARN, f"{text}; nothing is deleted automatically", advice)
    limit = "by Delta's retention" if policy.hours is None else f"after {policy.hours:g} hours"
    return Finding("retention", OK, f"{text}; deleted automatically {limit}")


def _insights(facts: TableFacts) -> Finding:
    # What is not recorded is no fault of the table.
    on = [
        setting.name.split(".")[-2]
        for setting in (INGESTION_ENABLED, CONSUMPTION_ENABLED)
        if facts.configuration.get(setting.name, "").strip().lower() == "true"
    ]
    if on:
        return Finding("insights", OK, f"recorded: {', '.join(on)}")
    return Finding("insights", OK, "queries are not recorded", _set(facts, CONSUMPTION_ENABLED.name, "true"))


def _log(facts: TableFacts) -> Finding:
    part = next((part for part in facts.health if part["part"] == _LOG_PART), None)
    text = "" if part is None else f"{part['value']:,.0f} {part['unit']}"
    if part is not None and part["value"] == 1:
        text = text.replace("commits", "commit")
    try:
        policy = log_policy(facts.configuration)
    except InvalidArgumentError as error:
        return Finding("log", WARN, error.message)
    text += "; consolidated automatically" if policy is not None else "; left to Delta"
    if part is not None and part["points_lost"]:
        return Finding("log", WARN, text.lstrip("; "), _set(facts, LOG_INTERVAL.name, "1 hour"))
    return Finding("log", OK, text.lstrip("; "))


def _set(facts: TableFacts, key: str, value: str) -> str:
    return f"ALTER TABLE {facts.name} SET TBLPROPERTIES ('{key}' = '{value}')"
