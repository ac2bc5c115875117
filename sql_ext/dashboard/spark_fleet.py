"""The fleet of a Spark application, as the collector asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from catalog.jvm.log_probe import MISSING, qualified
from catalog.state.automation import RUNNING, Automation
from catalog.table.managed_table import ManagedTable
from procedures.insight.health.health import diagnosis_of
from procedures.process.application import Application
from procedures.service.action import KnownTable
from procedures.service.execution import ledger_of, prepare_thread
from procedures.service.fleet_overview import Member, member_of, with_automation
from procedures.service.service_metrics import Sample
from procedures.service.service_settings import ServiceSettings
from procedures.service.table_registry import Registry
from procedures.service.watched_tables import SparkTables, Tables
from sql_ext.dashboard.fleet_data import FleetData, HealthNote, Notes, Seen, fleet_data


class SparkFleet:
    """The fleet; all methods but the first need a thread that ``prepare`` has prepared.

    Args:
        spark: session in which it works.
        app: the state of the process.
        tables: names or paths of the tables of the service; the whole metastore by default.
        samples: returns the metrics of the service; none without one.

    Raises:
        TableError: one of ``tables`` does not exist or is not a Delta table.
    """

    def __init__(
        self,
        spark: SparkSession,
        app: Application,
        tables: Sequence[str] | None = None,
        samples: Callable[[], Iterable[Sample]] | None = None,
    ) -> None:
        self._spark = spark
        self._app = app
        self._tables: Tables = SparkTables(spark, tables)
        self._registry = Registry()
        self._known: dict[str, KnownTable] = {}
        self._samples = samples
        self._settings = ServiceSettings.of(spark.conf.get)
        self._offered: dict[str, int] = {}

    def prepare(self) -> None:
        """See ``FleetSource.prepare``."""
        prepare_thread(self._spark, self._settings.pool)

    def tables(self) -> list[KnownTable]:
        """See ``FleetSource.tables``; starts no Spark job.

        A table that did not answer in time stays as it was seen last.
        """
        listed = self._tables.listed()
        inherited = self._tables.inherited(listed.values())
        self._registry.refresh(listed, inherited)
        due = dict.fromkeys(listed, True)
        sightings = self._tables.look(self._registry.questions(due))
        self._registry.update(due, listed, sightings, inherited)
        missing = {location for location, sighting in zip(due, sightings, strict=True) if sighting.state == MISSING}
        self._known.update({table.location: table for table in self._registry.take_updated()})
        self._known = {place: table for place, table in self._known.items() if place in due and place not in missing}
        return list(self._known.values())

    def member(self, table: KnownTable) -> Member | None:
        """See ``FleetSource.member``; starts no Spark job."""
        return member_of(self._spark, table, self._app.automations.get(table.location), self._app.clock.now())

    def health(self, table: KnownTable) -> HealthNote:
        """See ``FleetSource.health``; one Spark job, as ``use.health``."""
        diagnosis = diagnosis_of(ManagedTable.find(self._spark, table.name), self._app.clock)
        worst = max(diagnosis.parts, key=lambda part: part.lost, default=None)
        part = None if worst is None or not worst.lost else worst.name
        advice = diagnosis.steps[0].statement if diagnosis.steps else None
        return HealthNote(table.version, diagnosis.score, part, advice)

    def data(self, members: Sequence[Member], health: dict[str, HealthNote], notes: Notes) -> FleetData:
        """See ``FleetSource.data``; reads the newest text of the ledger."""
        now, automations = self._app.clock.now(), self._app.automations.all()
        by_location = {automation.location: automation for automation in automations}
        self._keep_offers(automations)
        runs = [(qualified(self._spark, run.location), run) for run in self._app.runs.live()]
        seen = Seen(
            members=[with_automation(member, by_location.get(member.table.location), now) for member in members],
            automations=automations,
            runs=runs,
            ledger=ledger_of(self._spark, self._settings.fleet_location).state(),
            health=dict(health),
            offered=self._offered,
        )
        has_service = self._samples is not None or self._app.services.attached is not None
        samples = () if self._samples is None else self._samples()
        return fleet_data(seen, samples, replace(notes, has_service=has_service), now)

    def _keep_offers(self, automations: Sequence[Automation]) -> None:
        """Keeps what a table has offered while its run is under way."""
        offered = {a.location: a.offer.cost for a in automations if a.offer is not None}
        running = {a.location for a in automations if a.state == RUNNING}
        kept = {location: cost for location, cost in self._offered.items() if location in running}
        self._offered = {**kept, **offered}
