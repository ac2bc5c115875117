"""The rows that a soak expects are those that the log says, in the order of the commits."""

import json
import sys
from itertools import islice
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from soak.history import Columns, History, Values, column_changes, statement


class Log:
    """A log with commits that carry keys."""

    def __init__(self, path):
        self.folder, self.version = path / "_delta_log", 0
        self.folder.mkdir()

    def commit(self, key=None, operation="WRITE"):
        info = {"commitInfo": {"operation": operation, **({"userMetadata": key} if key else {})}}
        (self.folder / f"{self.version:020d}.json").write_text(json.dumps(info, separators=(",", ":")) + "\n")
        self.version += 1


@pytest.fixture
def log(tmp_path):
    return Log(tmp_path)


@pytest.fixture
def history(tmp_path, log):
    return History(tmp_path, seconds=60)


def digest_of(rows):
    return len(rows), sum(values.number(number) for number, values in rows.items())


def test_statements_apply_in_the_order_of_the_log(history, log):
    columns = Columns()
    insert, update, lost = (
        history.begin(statement(*what))
        for what in (("insert", columns, 0, 9), ("update", columns, 0, 9, 1), ("delete", columns, 0, 9, 1))
    )
    log.commit()
    log.commit(insert)
    log.commit(insert, operation="USE OPTIMIZE")
    log.commit(update)
    assert history.has(insert)
    assert history.has(update)
    assert not history.has(lost)
    assert [history.rows[n].y for n in range(9)] == [0, 2, 2, 3, 5, 5, 6, 8, 8]
    assert [version.digest[0] for version in history.versions] == [0, 9, 9, 9]
    assert history.versions[1].digest == history.versions[2].digest != history.versions[3].digest


def test_the_sum_is_that_of_the_rows(history, log):
    for what in (("insert", 0, 60), ("merge", 40, 80), ("delete", 10, 50, 2), ("trim", 0, 15), ("update", 0, 80)):
        log.commit(history.begin(statement(what[0], Columns(), *what[1:])))
        assert history.newest().digest == digest_of(history.rows)


def test_a_dropped_column_takes_its_values_away(history, log):
    for change in islice(column_changes(), 5):
        log.commit(history.begin(change), operation="CHANGE")
        columns = history.newest().columns
        if columns.extra:
            low = 10 * log.version
            log.commit(history.begin(statement("insert", columns, low, low + 10)))
    assert history.columns == Columns()
    assert len(history.rows) == 40
    assert all(values.extra is None for values in history.rows.values())
    assert history.newest().digest == digest_of(history.rows)


def test_versions_expire_after_they_were_replaced(tmp_path, log):
    history = History(tmp_path, seconds=0)
    log.commit()
    first = history.newest()
    assert not history.is_expired(first)
    log.commit()
    assert history.newest().number == 1
    assert history.is_expired(first)
    assert len(history.versions) == 1


def test_a_number_depends_on_every_value():
    numbers = {Values(x, y, extra).number(5) for x in (1, 2) for y in (1, 2) for extra in (None, 1)}
    assert len(numbers) == 8
