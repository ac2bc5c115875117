"""Servers end when they are asked to, or with Spark."""

import pytest

from catalog.errors import SparkFailedError
from sql_ext import driver_process
from sql_ext.driver_process import serve_until


def test_servers_end_when_they_are_asked_to(monkeypatch):
    answers = iter([False, False, True])
    monkeypatch.setattr(driver_process, "is_stopped", lambda _: False)
    monkeypatch.setattr(driver_process, "_POLL_SECONDS", 0)
    serve_until(lambda: next(answers), None)
    assert list(answers) == []


def test_servers_end_with_spark(monkeypatch):
    stopped, asked = iter([False, True]), iter([False] * 3)
    monkeypatch.setattr(driver_process, "is_stopped", lambda _: next(stopped))
    monkeypatch.setattr(driver_process, "_POLL_SECONDS", 0)
    with pytest.raises(SparkFailedError, match="its JVM has ended"):
        serve_until(lambda: next(asked), None)
