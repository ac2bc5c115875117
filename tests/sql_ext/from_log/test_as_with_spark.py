"""The log alone gives the numbers of a session: files, health and overview of one table, both ways."""

import json
from dataclasses import fields

import numpy as np
import pytest
from pyspark.sql import functions as F

from catalog.files.file_table import FileTable
from procedures.insight.health.diagnosis import health_rows
from procedures.insight.health.health import diagnosis_of
from procedures.process.application import application
from sql_ext.commands.overview import overview_of_log
from sql_ext.commands.session_overview import overview
from sql_ext.from_log.health import diagnosis_of as diagnosis_of_log
from sql_ext.from_log.log_table import LogTable

COLUMNS = "id BIGINT, day DATE, at TIMESTAMP, price DECIMAL(10,2), name STRING, p INT"


def _rows(spark, start, count):
    return spark.range(start, start + count).select(
        "id",
        F.expr("date_add(DATE'2026-01-01', CAST(id % 40 AS INT)) AS day"),
        F.expr("timestamp_seconds(1767225600 + id * 61) AS at"),
        F.expr("CAST(id % 97 / 7 AS DECIMAL(10,2)) AS price"),
        F.expr("concat('ä', id % 13) AS name"),
        F.expr("CAST(id % 2 AS INT) AS p"),
    )


def _plain(spark, new_table):
    table = new_table(COLUMNS)
    for number in range(3):
        table.append(_rows(spark, 100 * number, 100))
    return table


def _changed(spark, new_table):
    """Several revisions, unindexed files, deleted rows, a checkpoint and commits after it."""
    table = new_table(COLUMNS, index="day,at,price,name:hashing", cube_size=50).append(_rows(spark, 0, 600)).index()
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    table.append(_rows(spark, 10_000, 300)).index()
    table.checkpoint()
    table.append(_rows(spark, 600, 100))
    # The files of the second index stay those of the checkpoint, which has their times in another form.
    table.sql("DELETE FROM {t} WHERE id % 11 = 3 AND id < 10000")
    return table


def _partitioned(spark, new_table):
    table = new_table(COLUMNS, tail="PARTITIONED BY (p)")
    for number in range(2):
        table.append(_rows(spark, 50 * number, 50))
    return table


def _clustered(spark, new_table):
    table = new_table(COLUMNS).append(_rows(spark, 0, 50))
    table.sql("ALTER TABLE {t} CLUSTER BY (id, day)")
    return table


def _named(numbers, names):
    """Numbers of cubes and writes by name: a table that followed commits has numbers that no file uses any more."""
    return [names[number] for number in numbers]


def _equal(found, expected):
    """Whether two tables of files are equal, in every column."""
    for field in fields(FileTable):
        one, other = getattr(found, field.name), getattr(expected, field.name)
        if field.name == "blocks":
            for name in ("file", "min_weight", "max_weight", "elements"):
                np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)
            assert _named(one.cube, one.cube_ids) == _named(other.cube, other.cube_ids)
        elif field.name == "partition":
            np.testing.assert_array_equal(*(np.unique(part, return_inverse=True)[1] for part in (one, other)))
        elif field.name == "write":
            assert _named(one, found.write_ids) == _named(other, expected.write_ids)
        elif field.name != "write_ids":
            np.testing.assert_array_equal(one, other, field.name)


def _others(facts):
    """The facts that are no arrays."""
    arrays = ("files", "is_indexed", "cube_rows")
    return {field.name: getattr(facts, field.name) for field in fields(facts) if field.name not in arrays}


@pytest.mark.quick_sample(2)
@pytest.mark.parametrize("make", [_plain, _changed, _partitioned, _clustered], ids=lambda make: make.__name__)
def test_the_log_gives_the_numbers_of_a_session(spark, new_table, make):
    table = make(spark, new_table)
    clock, by_name = application().clock, table.managed
    by_path = type(by_name).find(spark, str(table.path))
    of_log = LogTable.of(table.path, {})
    assert (of_log.name, of_log.location) == (by_path.name, by_path.location)
    with_session, from_log = diagnosis_of(by_path, clock), diagnosis_of_log(of_log, clock)
    _equal(from_log.facts.files, with_session.facts.files)
    assert _others(from_log.facts) == _others(with_session.facts)
    np.testing.assert_array_equal(from_log.facts.is_indexed, with_session.facts.is_indexed)
    np.testing.assert_array_equal(from_log.facts.cube_rows, with_session.facts.cube_rows)
    assert health_rows(from_log) == health_rows(with_session)
    assert from_log.steps == with_session.steps
    shown, other = overview_of_log(of_log, clock), overview(by_path)
    assert json.loads(json.dumps(shown)) == json.loads(json.dumps(other))
