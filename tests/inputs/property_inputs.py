"""Table properties, settings of a session, write options and specifications of index columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from random import Random
from typing import Any

from pyspark.sql.types import IntegerType, MapType, StringType, StructType

from catalog.predicates.conditions import AllOf
from catalog.properties.checks import property_errors
from catalog.properties.fleet_properties import pool_of
from catalog.properties.hours import Hours
from catalog.properties.index_properties import COLUMN_STATS_KEY, COLUMNS_KEY, IndexConfiguration
from catalog.properties.inherited import InheritedProperties
from catalog.properties.names import PROPERTIES
from catalog.properties.optimization_properties import effective_type
from catalog.pruning.read_planning import plan_read, plan_sample
from catalog.settings.session_settings import SESSION_SETTINGS
from catalog.settings.setting import Setting
from inputs.cases import Reader
from inputs.mutations import any_text, changed_text, json_text, odd_text
from otree.errors import IndexFormatError
from otree.revision import Revision, configuration_of, newest_revision
from otree.transformation import HashTransformation, LinearTransformation
from otree.transformer import Transformer
from procedures.rewrite.write_options import check_options
from procedures.rewrite.write_settings import index_settings
from procedures.service.metadata_changes import TableMetadata, check_defaults, check_other_format, checked_change
from procedures.service.schedule import check_schedule, schedule_of
from procedures.service.service_settings import SERVICE_SETTINGS, ServiceSettings

SCHEMA = (
    StructType().add("id", "long").add("x", "double").add("name", "string").add("at", "timestamp").add("day", "date")
    .add("a b", "integer").add("x.y", "decimal(10,2)").add("s", StructType().add("f", "float").add("g`h", "string"))
    .add("flag", "boolean").add("map", MapType(StringType(), IntegerType()))
)  # fmt: skip
_COLUMNS = ("id,x", "id", "x:linear,name:hashing", "`a b`,s.f", "`x.y`", "name:quantiles", "at,day", "s.`g``h`", "auto")
_STATS = {"x_min": 0.5, "x_max": 9,
          "name_quantiles": ["a", "m", "z"], "id_quantiles": [1, 5, 9],
          "day_min": "2026-01-01",
          "day_max": "2026-11-21", "at_min": 0, "at_max": "2026-11-21 13:46:00Z"}  # fmt: skip
_VALUES = (
    "true", "false", "1", "0", "0.5", "10", "128MB", "1 day", "10 minutes", "90s",
    "1 hour 30 minutes", "interval 5 days",
    "0.15,0.01", "id", "at", "day", "qbeast", "UnindexedFiles", "SortedRunCompaction,UnindexedFiles", "id,x",
    "01:00-05:00", "22:30-05:00 Europe/Madrid", "daily", "0 3 * * *", "score>50", "auto", "periodic", "manual",
)  # fmt: skip


@cache
def revisions() -> dict[str, str]:
    """The properties of a table with an index over two columns."""
    transformers = (Transformer("linear", "id", "LongDataType"), Transformer("hashing", "name", "StringDataType"))
    spaces = (LinearTransformation(0, 100, 50, "LongDataType"), HashTransformation(7))
    made = Revision(1, 1_700_000_000_000, "/t", 100_000, transformers, spaces)
    return configuration_of([made])


def _settings() -> list[Setting[Any]]:
    return [*PROPERTIES.values(), *SESSION_SETTINGS, *SERVICE_SETTINGS]


def _setting_input(chance: Random) -> tuple[Setting[Any], str]:
    setting = chance.choice(_settings())
    return setting, any_text(chance, *_VALUES, *([setting.default] if setting.default else []))


def _read_setting(made: tuple[Setting[Any], str]) -> None:
    setting, text = made
    value = setting.parse(text)
    if isinstance(value, float) and setting.type.name == "time":
        int(value)  # as all users of durations do


def _configuration(chance: Random) -> dict[str, str]:
    """Properties of a table, most of which exist."""
    names = sorted(PROPERTIES)
    found: dict[str, str] = {}
    for _ in range(chance.randrange(1, 6)):
        name = chance.choice(names)
        if chance.random() < 0.1:
            name = chance.choice(
                (changed_text(chance, name), f"use.{odd_text(chance)}", f"use.index.extensions.{odd_text(chance)}")
            )
        found[name] = any_text(chance, *_VALUES)
    if chance.random() < 0.6:
        found[COLUMNS_KEY] = any_text(chance, *_COLUMNS)
    if chance.random() < 0.3:
        found[COLUMN_STATS_KEY] = json_text(chance, _STATS)
    if chance.random() < 0.4:
        found |= _revision(chance)
    return found


def _revision(chance: Random) -> dict[str, str]:
    """The properties of an index, one of which is often changed."""
    found = dict(revisions())
    key = chance.choice(sorted(found))
    kind = chance.random()
    if kind < 0.4 and found[key].startswith("{"):
        found[key] = json_text(chance, json.loads(found[key]))
    elif kind < 0.6:
        found[key] = any_text(chance, found[key])
    elif kind < 0.7:
        found[changed_text(chance, key)] = found.pop(key)
    return found


def _partition(chance: Random) -> tuple[str, ...]:
    return chance.choice(((), (), ("day",), ("x",)))


def _change_input(chance: Random) -> tuple[TableMetadata, TableMetadata, InheritedProperties]:
    before = TableMetadata(_configuration(chance) if chance.random() < 0.5 else {}, SCHEMA, _partition(chance))
    columns = StructType([field for field in SCHEMA.fields if chance.random() < 0.95])
    after = TableMetadata({**before.configuration, **_configuration(chance)}, columns, before.partition)
    return before, after, InheritedProperties(_configuration(chance), _configuration(chance))


def _read_change(made: tuple[TableMetadata, TableMetadata, InheritedProperties]) -> None:
    json.dumps(checked_change(*made))


def _read_table(made: tuple[dict[str, str], tuple[str, ...]]) -> None:
    """What every look at a table does with its properties; mistakes become values."""
    configuration, partition = made
    property_errors(configuration, SCHEMA, partition)
    schedule_of(configuration)
    effective = InheritedProperties(configuration, configuration).effective(configuration, SCHEMA.names)
    effective_type(effective)
    InheritedProperties(configuration, configuration).pools("shop")
    plan_read(json.dumps(configuration), AllOf(()))
    plan_sample(json.dumps(configuration), 0.0, 0.1)
    IndexConfiguration.of(effective, SCHEMA, newest_revision(configuration), partition)


def _read_options(options: dict[str, str]) -> None:
    ours = {name: text for name, text in options.items() if name in ("columnsToIndex", "cubeSize", "columnStats")}
    check_options(ours, [name for name in options if name not in ours], ["mergeSchema", "replaceWhere"])
    index_settings(ours, {}, SCHEMA, (), False, True)


def _options_input(chance: Random) -> dict[str, str]:
    found = {"columnsToIndex": any_text(chance, *_COLUMNS)} if chance.random() < 0.8 else {}
    found |= {"cubeSize": any_text(chance, "5000", "1")} if chance.random() < 0.5 else {}
    found |= {"columnStats": json_text(chance, _STATS)} if chance.random() < 0.5 else {}
    return found | {any_text(chance, "mergeSchema", "cubeSiz", "use.index.columns", "a.b"): "x" for _ in range(2)}


def _service(texts: Mapping[str, str]) -> ServiceSettings:
    return ServiceSettings.of(texts.get)


def _service_input(chance: Random) -> dict[str, str]:
    names = [setting.name for setting in SERVICE_SETTINGS]
    names += [f"spark.qbeast.use.fleet.{name}" for name in ("maxBytes", "period", "maxRuns")]
    return {chance.choice(names): any_text(chance, *_VALUES) for _ in range(3)}


def _hours(chance: Random) -> str:
    return any_text(chance, "01:00-05:00", "22:30-05:00 Europe/Madrid", "24:00-1:00 UTC", "0:0-0:1")


def _read_hours(text: str) -> None:
    hours = PROPERTIES["use.fleet.hours"].parse(text)
    assert isinstance(hours, Hours)
    hours.next_begin(1_700_000_000_000)
    hours.contains(0)


def _defaults(configuration: dict[str, str]) -> None:
    check_defaults(configuration)
    pool_of("shop", configuration)
    check_schedule(configuration)


def _other_format(configuration: dict[str, str]) -> None:
    check_other_format("t", "parquet", configuration)


def readers() -> list[Reader]:
    """The readers of properties and settings."""
    table: Callable[[Random], tuple[dict[str, str], tuple[str, ...]]] = lambda chance: (  # noqa: E731
        _configuration(chance),
        _partition(chance),
    )
    return [
        Reader("properties: one value", _setting_input, _read_setting, share=10),
        Reader("properties: a statement", _change_input, _read_change, (IndexFormatError,), share=10),
        Reader("properties: a table", table, _read_table, (IndexFormatError,), share=10),
        Reader("properties: defaults of a database", _configuration, _defaults),
        Reader("properties: another format", _configuration, _other_format),
        Reader("properties: hours", _hours, _read_hours),
        Reader("settings: options of a write", _options_input, _read_options),
        Reader("settings: the service", _service_input, _service),
    ]
