"""Delta's jars in Ivy's cache: named as files if all are there, else left to Ivy."""

import json
import os
import pwd
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession

from sql_ext import delta_jars
from sql_ext.configuration import configure, spark_conf
from sql_ext.delta_jars import downloaded_jars, resolved
from sql_ext.installed_versions import installed_versions

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = "spark.jars.packages"
DELTA = spark_conf()[PACKAGES]


def fill(ivy):
    """Puts an archive for each jar into a folder laid out as Ivy's."""
    for coordinates in resolved(DELTA):
        group, name, version = coordinates.split(":")
        place = ivy / "cache" / group / name / "jars" / f"{name}-{version}.jar"
        place.parent.mkdir(parents=True)
        with zipfile.ZipFile(place, "w") as jar:
            jar.writestr("META-INF/MANIFEST.MF", "")
    return ivy


def test_downloaded_jars_replace_the_resolution(tmp_path, monkeypatch):
    ivy = fill(tmp_path / ".ivy2.5.2")
    monkeypatch.setattr(delta_jars, "_account_home", lambda: str(tmp_path))
    monkeypatch.setenv("HOME", "/elsewhere")
    options = configure(SparkSession.Builder().config("spark.jars", "/mine.jar"))._options
    assert not {PACKAGES, "spark.jars.excludes"} & set(options)
    first, shim, *jars = options["spark.jars"].split(",")
    assert (first, Path(shim).name, len(jars)) == ("/mine.jar", installed_versions({}).shim, len(resolved(DELTA)))
    assert Path(jars[0]).name == "{1}-{2}.jar".format(*DELTA.split(":"))
    assert all(Path(jar).is_relative_to(ivy) for jar in jars)
    twice = configure(configure(SparkSession.Builder()))._options
    assert PACKAGES not in twice
    assert len(twice["spark.jars"].split(",")) == 1 + len(jars)


def test_an_incomplete_cache_is_left_to_ivy(tmp_path):
    settings = {"spark.jars.ivy": str(fill(tmp_path / "ivy"))}
    jars = downloaded_jars(DELTA, settings, {})
    assert jars is not None
    content = jars[-1].read_bytes()
    jars[-1].write_bytes(content[: len(content) // 2])
    assert downloaded_jars(DELTA, settings, {}) is None
    jars[-1].unlink()
    assert downloaded_jars(DELTA, settings, {}) is None
    assert downloaded_jars(DELTA, {"spark.jars.ivy": str(tmp_path)}, {}) is None


@pytest.mark.parametrize(("home", "expected"), [("/home/me", "/home/me"), ("/", "/h"), (None, "/h")])
def test_the_home_is_that_of_the_account(monkeypatch, home, expected):
    """As Java's ``user.home``: HOME counts only for an account without a home."""

    def entry(_):
        if home is None:
            raise KeyError
        return SimpleNamespace(pw_dir=home)

    monkeypatch.setattr(pwd, "getpwuid", entry)
    assert delta_jars.ivy_folder({}, {"HOME": "/h"}) == Path(expected, ".ivy2.5.2")


@pytest.mark.parametrize("key", [PACKAGES, "spark.jars.excludes", "spark.jars.ivySettings", "spark.jars.repositories"])
def test_what_the_caller_resolves_is_resolved_together(tmp_path, key):
    """Versions of common dependencies may differ from those that Delta alone would get."""
    settings = {"spark.jars.ivy": str(fill(tmp_path / "ivy"))}
    assert downloaded_jars(DELTA, {**settings, key: "a:b:1"}, {}) is None
    assert downloaded_jars("io.delta:delta-spark_4.2_2.13:9.9.9", settings, {}) is None


RESOLVE = """
import json, sys
from pyspark.sql import SparkSession
from sql_ext.configuration import spark_conf
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
for key in ("spark.jars.packages", "spark.jars.excludes"):
    builder = builder.config(key, spark_conf()[key])
print(json.dumps(builder.getOrCreate().sparkContext._jvm.System.getProperty("spark.jars").split(",")))
"""


@pytest.mark.slow
def test_the_list_is_what_ivy_resolves(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", RESOLVE],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    found = {Path(jar).name for jar in json.loads(done.stdout.splitlines()[-1])}
    assert found == {"{}_{}-{}.jar".format(*coordinates.split(":")) for coordinates in resolved(DELTA)}
