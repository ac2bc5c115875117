"""Settings of the service from the application's configuration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from catalog.properties.fleet_properties import BUDGET_KEYS, pool_of
from catalog.settings.setting import BOOLEAN, TEXT, Setting, duration, whole_number

_TIME = duration("a positive time such as '10 minutes', '90s' or '30000 ms'")

ENABLED = Setting(
    "spark.qbeast.use.service.enabled",
    BOOLEAN,
    "Whether attach starts the service, which is idle until a table turns it on. Setting it to false later pauses it.",
    "true",
)
OPTIMIZATION_INTERVAL = Setting(
    "spark.qbeast.use.optimization-interval",
    _TIME,
    "Time between the starts of two runs of a table; a number without a unit is milliseconds.",
    "10 minutes",
)
LISTENER_INTERVAL = Setting(
    "spark.qbeast.use.listener-interval",
    _TIME,
    "Time between two checks of the tables; a number without a unit is milliseconds.",
    "30000 ms",
)
MAX_TABLES = Setting(
    "spark.qbeast.use.service.max-tables", whole_number(1, digits=4), "Tables optimized at the same time.", "2"
)
POOL = Setting("spark.qbeast.use.service.pool", TEXT, "Scheduler pool of the service's Spark jobs.", "use")
MAX_QUEUED_TASKS = Setting(
    "spark.qbeast.use.service.max-queued-tasks",
    whole_number(0),
    "A run that is due waits, for one optimization interval at most, while more tasks of other pools are queued.",
    unset="the number of cores",
)
FLEET_LOCATION = Setting(
    "spark.qbeast.use.fleet.location",
    TEXT,
    "Folder of the ledger in which all services count what they spend of the budgets of databases.",
    unset="below the location of the database default",
)
SERVICE_SETTINGS: tuple[Setting[object], ...] = (
    ENABLED,
    OPTIMIZATION_INTERVAL,
    LISTENER_INTERVAL,
    MAX_TABLES,
    POOL,
    MAX_QUEUED_TASKS,
    FLEET_LOCATION,
)


@dataclass(frozen=True)
class ServiceSettings:
    """Settings of the service; times in milliseconds.

    Attributes:
        enabled: whether the service optimizes tables.
        optimization_interval: time between two runs of a table.
        listener_interval: time between two checks of the tables.
        max_tables: tables optimized at the same time.
        pool: scheduler pool of its Spark jobs.
        max_queued_tasks: a due run waits while more tasks of other pools are queued; None = the number of cores.
        fleet_location: folder of the ledger of budgets; None = below the location of the database ``default``.
    """

    enabled: bool = ENABLED.value({})
    optimization_interval: int = int(OPTIMIZATION_INTERVAL.value({}))
    listener_interval: int = int(LISTENER_INTERVAL.value({}))
    max_tables: int = MAX_TABLES.value({})
    pool: str = POOL.value({})
    max_queued_tasks: int | None = None
    fleet_location: str | None = None

    @classmethod
    def of(cls, conf: Callable[[str, str], str | None]) -> ServiceSettings:
        """Reads the settings.

        Args:
            conf: returns the value of a setting, or the default that it is given.

        Raises:
            InvalidArgumentError: a value is invalid.
        """
        texts = {key: text for key in BUDGET_KEYS if (text := (conf(f"spark.qbeast.{key}", "") or "").strip())}
        pool_of(None, texts)  # only checked: tables inherit it
        return cls(
            enabled=ENABLED.of_conf(conf),
            optimization_interval=int(OPTIMIZATION_INTERVAL.of_conf(conf)),
            listener_interval=int(LISTENER_INTERVAL.of_conf(conf)),
            max_tables=MAX_TABLES.of_conf(conf),
            pool=POOL.of_conf(conf),
            max_queued_tasks=MAX_QUEUED_TASKS.optional_of_conf(conf),
            fleet_location=FLEET_LOCATION.optional_of_conf(conf),
        )
