"""``use-spark diagnose``."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from deltalake import write_deltalake

from catalog.errors import TableError
from sql_ext.commands.command_line import cli
from sql_ext.diagnosis.table_search import find_tables

WITHOUT_SPARK = """
import sys

class NoSpark:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pyspark", "delta", "py4j"):
            raise ImportError(name)

sys.meta_path.insert(0, NoSpark())
from sql_ext.commands.command_line import main
sys.argv[1:] = {arguments!r}
main()
"""


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables") / "t"
    chance = np.random.default_rng(5)
    for _ in range(6):
        rows = pa.table({"x": chance.integers(0, 10**6, 8_000), "y": chance.integers(0, 10**6, 8_000)})
        write_deltalake(str(folder), rows, mode="append")
    return folder


def run(*arguments: str):
    return CliRunner().invoke(cli, ["diagnose", *arguments])


def test_it_runs_without_spark(table):
    arguments = ["diagnose", str(table), "--target-file-bytes", "50kB"]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_SPARK.format(arguments=arguments)], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "use-spark index --table" in done.stdout
    assert done.stderr == ""


def test_json_has_an_object_per_table_and_per_unreadable_path(table, tmp_path):
    done = run(str(table), str(tmp_path / "missing"), "--json", "--target-file-bytes", "50kB")
    assert done.exit_code == 0
    found = [json.loads(line) for line in done.output.splitlines()]
    assert found[0]["verdict"]["gain"] == "INDEX"
    assert found[1]["code"] == "USE_TABLE_NOT_FOUND"


def test_a_page_is_written(table, tmp_path):
    page = tmp_path / "page.html"
    done = run(str(table), "--html", str(page))
    assert (done.exit_code, done.output.strip()) == (0, str(page))
    assert page.read_text().startswith("<!doctype html>")
    page.write_text("<!DOCTYPE html> an earlier one")
    assert run(str(table), "--html", str(page)).exit_code == 0
    assert "an earlier one" not in page.read_text()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("no/page.html", "--html = '{}' is not accepted: a file, in a folder that exists"),
        ("other.txt", "this is another file"),
        (".", "is a directory"),
    ],
)
def test_a_page_replaces_no_other_file(tmp_path, name, text):
    (tmp_path / "other.txt").write_text("precious")
    file = str(tmp_path / name)
    done = run(str(tmp_path / "missing"), "--html", file)
    assert done.exit_code == 2
    assert text.format(file) in done.output
    assert (tmp_path / "other.txt").read_text() == "precious"


def test_a_page_that_cannot_be_written(table, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    done = run(str(table), "--html", str(tmp_path / "page.html"))
    assert done.exit_code == 1
    assert f"USE_WRITE_DENIED: {tmp_path}/page.html cannot be written: No space left on device." in done.output


@pytest.mark.parametrize("option", [[], ["--json"], ["--html"]], ids=["text", "json", "html"])
def test_names_of_folders_need_not_be_valid_unicode(table, tmp_path, option):
    name = os.fsdecode(b"bad\xffname")
    shutil.copytree(table, tmp_path / name)
    shutil.copytree(table, tmp_path / "t")
    page = tmp_path / "page.html"
    option = ["--html", str(page)] if option == ["--html"] else option
    done = subprocess.run(
        [sys.executable, "-m", "sql_ext", "diagnose", str(tmp_path), *option],
        check=False,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    output = page.read_text("utf-8") if "--html" in option else done.stdout
    if "--json" in option:
        found = [json.loads(line) for line in output.splitlines()]
        assert {one["location"] for one in found} == {str(tmp_path / "t"), str(tmp_path / name)}
    else:
        assert "bad name" in output or "bad\\udcffname" in output


def test_queries_come_from_a_file(table, tmp_path):
    queries = tmp_path / "queries.sql"
    queries.write_text("SELECT * FROM t WHERE y < 9000;\n-- a comment\nSELECT * FROM t WHERE y > 990000;\n")
    done = run(str(table), "--queries", str(queries), "--target-file-bytes", "50kB")
    assert "index columns: y" in done.output
    assert "2 queries" in done.output
    queries.write_text("SELECT * FROM t WHERE z < 9000")
    done = run(str(table), "--queries", str(queries))
    assert done.exit_code == 2
    assert "USE_UNKNOWN_COLUMN" in done.output


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "PATH"),
        (("",), "it is empty"),
        (("t", " "), "it is empty"),
        (("t", "--html", ""), "--html"),
        (("t", "--budget", "much"), "--budget"),
        (("t", "--target-file-bytes", "0"), "--target-file-bytes"),
        (("t", "--queries", "/nowhere.sql"), "--queries"),
        (("t", "--storage-option", "key"), "key=value"),
        (("t", "--limit", "0"), "--limit"),
    ],
)
def test_wrong_arguments_are_named(arguments, text):
    done = run(*arguments)
    assert done.exit_code == 2
    assert text in done.output


def test_a_missing_table_ends_with_1(tmp_path):
    done = run(str(tmp_path / "missing"))
    assert done.exit_code == 1
    assert "USE_TABLE_NOT_FOUND" in done.output


def test_names_in_a_file_url_are_encoded_and_those_of_folders_are_not(tmp_path):
    root = tmp_path / "of a team"
    folders = [root / "x y", root / "x%20y", root / "below" / "z"]
    for folder in folders:
        (folder / "_delta_log").mkdir(parents=True)
    assert find_tables(root.as_uri(), {}) == sorted(map(str, folders))
    for scheme in ("FILE://", "file:", "file://localhost"):
        assert find_tables(f"{scheme}{root.as_uri()[7:]}/x%2520y", {}) == [str(folders[1])]
    with pytest.raises(TableError, match="was not found"):
        find_tables((root / "missing").as_uri(), {})
