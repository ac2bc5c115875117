"""The settings of a warehouse folder, and its claim; no Spark."""

import fcntl
import io
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
from py4j.java_gateway import GatewayClient, GatewayParameters
from pyspark import SparkContext

from catalog.errors import InvalidArgumentError, UseError, WriteDeniedError
from sql_ext import driver_process
from sql_ext.commands import command_line
from sql_ext.driver_process import end_driver, release_no_more_objects, started_driver
from sql_ext.warehouse import open_warehouse, warehouse_conf, with_warehouse


def test_settings(tmp_path):
    folder = tmp_path / "my tables"
    conf = warehouse_conf(folder)
    assert conf == {
        "spark.sql.warehouse.dir": str(folder),
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/_metastore;create=true",
        "spark.driver.extraJavaOptions": f'"-Dderby.stream.error.file={folder}/_metastore.log"',
    }
    assert not folder.exists()


def test_a_relative_folder_is_made_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert warehouse_conf(type(tmp_path)("w"))["spark.sql.warehouse.dir"] == str(tmp_path / "w")


@pytest.mark.parametrize("name", ["a;create=false", 'a"b', "a\nb"])
def test_paths_that_settings_cannot_hold(tmp_path, name):
    with pytest.raises(InvalidArgumentError, match="warehouse = "):
        warehouse_conf(tmp_path / name)


def test_options_of_the_jvm_are_joined(tmp_path):
    given = {"spark.driver.extraJavaOptions": "-Xss8m", "spark.sql.warehouse.dir": "/elsewhere", "a": "b"}
    conf = with_warehouse(given, tmp_path)
    assert conf["spark.driver.extraJavaOptions"].startswith('-Xss8m "-Dderby')
    assert conf["spark.sql.warehouse.dir"] == str(tmp_path)
    assert conf["a"] == "b"


CLAIMING = """
import pathlib, sys
from sql_ext.warehouse import open_warehouse
open_warehouse(pathlib.Path(sys.argv[1]))
print("held", flush=True)
input()
"""
DERBY = """
import fcntl, sys
file = open(sys.argv[1] + "/_metastore/dbex.lck", "r+b")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
input()
"""


@pytest.mark.parametrize("program", [CLAIMING, DERBY], ids=["ours", "any"])
def test_one_process_at_a_time(tmp_path, program):
    """The second gets one line; what the first leaves behind when it is killed keeps nobody out."""
    (tmp_path / "_metastore").mkdir()
    (tmp_path / "_metastore" / "dbex.lck").touch()
    other = subprocess.Popen(
        [sys.executable, "-c", program, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with other:
        try:
            assert other.stdout.readline() == "held\n"
            with pytest.raises(UseError, match="open in another process") as refused:
                open_warehouse(tmp_path, 0)
            assert refused.value.code == "USE_WAREHOUSE_IN_USE"
        finally:
            other.kill()
    open_warehouse(tmp_path)
    open_warehouse(tmp_path)  # the same process again


class Clock:
    """A time that passes while somebody pauses, and what happens at some of its moments."""

    def __init__(self, **events):
        self.now = 0.0
        self.events = {float(moment.removeprefix("at")): act for moment, act in events.items()}

    def __call__(self):
        return self.now

    def pause(self, seconds):
        self.now += seconds
        for moment in [moment for moment in self.events if moment <= self.now]:
            self.events.pop(moment)()


@pytest.fixture
def predecessor(tmp_path):
    """A process whose command has ended and whose JVM has not: Derby's lock is held, ours is not."""
    (tmp_path / "_metastore").mkdir()
    (tmp_path / "_metastore" / "dbex.lck").touch()
    program = [sys.executable, "-c", DERBY, tmp_path]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def end(process):
    process.kill()
    process.wait()


def test_a_process_that_is_ending_is_waited_for(tmp_path, predecessor):
    clock = Clock(at3=lambda: end(predecessor))
    open_warehouse(tmp_path, clock=clock, pause=clock.pause)
    assert 3 <= clock.now < 4


def test_a_process_that_does_not_end_is_refused_within_seconds(tmp_path, predecessor):
    clock = Clock()
    with pytest.raises(UseError, match="open in another process"):
        open_warehouse(tmp_path, clock=clock, pause=clock.pause)
    assert 1 < clock.now < 10
    # A refusal leaves no claim of its own.
    end(predecessor)
    with (tmp_path / "_metastore.log").open("ab") as claim:
        fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_an_interrupt_ends_the_wait(tmp_path, predecessor):
    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        open_warehouse(tmp_path, pause=interrupt)


class Driver:
    """A JVM that ends some time after its standard input, or never."""

    def __init__(self, error=None):
        self.stdin = io.BytesIO()
        self.error = error
        self.waited = None

    def wait(self, timeout=None):
        assert self.stdin.closed
        self.waited = timeout
        if self.error:
            raise self.error
        return 0


def test_a_command_waits_for_the_jvm_that_it_started():
    driver = Driver()
    assert end_driver(driver)
    assert 5 <= driver.waited <= 60


@pytest.mark.parametrize("error", [subprocess.TimeoutExpired("java", 15), KeyboardInterrupt(), ChildProcessError()])
def test_the_wait_for_the_jvm_has_an_end(error):
    assert not end_driver(Driver(error))


def test_without_a_jvm_there_is_nothing_to_wait_for(monkeypatch):
    assert end_driver(None)
    monkeypatch.setattr(SparkContext, "_gateway", None)
    assert started_driver() is None
    # Under spark-submit, the JVM is there first.
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=None))
    assert started_driver() is None
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc="the JVM"))
    assert started_driver() == "the JVM"


@pytest.mark.parametrize("error", [None, click.exceptions.Exit(1), KeyboardInterrupt(), BrokenPipeError(), OSError()])
def test_every_end_of_a_command_waits_for_its_jvm(monkeypatch, tmp_path, error):
    """The entry point, with a command that ends in one way or another."""
    seen = []

    def command(**_):
        if error:
            raise error

    monkeypatch.setattr(command_line, "cli", command)
    monkeypatch.setattr(driver_process, "started_driver", lambda: "the JVM")
    monkeypatch.setattr(driver_process, "release_no_more_objects", lambda: seen.append("no more messages"))
    monkeypatch.setattr(driver_process, "end_driver", lambda driver, _: seen.append(driver))
    with (tmp_path / "out").open("w") as out, (tmp_path / "err").open("w") as err:
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        with suppress(BaseException):
            command_line.main()
    assert seen == ["no more messages", "the JVM"]


def test_released_objects_are_not_reported_to_a_jvm_that_ends(monkeypatch):
    """Py4J logs an error for each message that the JVM does not answer."""
    client = GatewayClient(gateway_parameters=GatewayParameters(port=1))
    sent = []
    monkeypatch.setattr(client, "send_command", sent.append)
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(_gateway_client=client))
    client.garbage_collect_object("o1")
    assert len(sent) == 1
    release_no_more_objects()
    client.garbage_collect_object("o2")
    assert len(sent) == 1


def test_a_reader_that_leaves_gets_no_stack_trace():
    """As ``use-spark conf | head -1``."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "sql_ext", "conf"],
            stdout=closed,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, "")


def test_the_folder_is_made(tmp_path):
    open_warehouse(tmp_path / "new" / "w")
    assert (tmp_path / "new" / "w").is_dir()


def test_what_is_no_folder(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InvalidArgumentError, match="a folder"):
        open_warehouse(tmp_path / "file")
    with pytest.raises(WriteDeniedError, match="No file can be written"):
        open_warehouse(tmp_path / "file" / "below")
