"""The settings of a warehouse folder, and its claim; no Spark."""

import subprocess
import sys

import pytest

from catalog.errors import InvalidArgumentError, UseError, WriteDeniedError
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
                open_warehouse(tmp_path)
            assert refused.value.code == "USE_WAREHOUSE_IN_USE"
        finally:
            other.kill()
    open_warehouse(tmp_path)
    open_warehouse(tmp_path)  # the same process again


def test_the_folder_is_made(tmp_path):
    open_warehouse(tmp_path / "new" / "w")
    assert (tmp_path / "new" / "w").is_dir()


def test_what_is_no_folder(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InvalidArgumentError, match="a folder"):
        open_warehouse(tmp_path / "file")
    with pytest.raises(WriteDeniedError, match="No file can be written"):
        open_warehouse(tmp_path / "file" / "below")
