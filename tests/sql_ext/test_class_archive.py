"""The archive of classes: when it is used, when it is written, and what keeps it from being used."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sql_ext import class_archive, local_session
from sql_ext.class_archive import FOLDER_VARIABLE, ClassArchive

ROOT = Path(__file__).resolve().parents[2]
MAGIC = bytes.fromhex("a8ab0bf0")
JAVA = "spark.driver.extraJavaOptions"


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """A machine with a JVM and an empty cache."""
    monkeypatch.setattr(class_archive, "_requested", [])
    server = tmp_path / "jdk" / "lib" / "server"
    server.mkdir(parents=True)
    for name in ("classes.jsa", "libjvm.so"):
        (server / name).touch()
    return {"JAVA_HOME": str(tmp_path / "jdk"), "HOME": str(tmp_path)}


def folder(environment):
    return Path(environment["HOME"], ".cache", "use-spark")


def options(environment, *, may_write=True, settings=None):
    archive = ClassArchive.of(settings or {}, environment)
    return None if archive is None else archive.options(may_write=may_write)


def written(environment, content=MAGIC + b"classes"):
    """What the JVM leaves when it ends."""
    (part,) = folder(environment).glob("*.part")
    part.write_bytes(content)
    return part


def test_the_first_command_writes_and_later_ones_use_it(environment):
    assert options(environment, may_write=False) is None
    assert not class_archive.is_requested()
    assert options(environment).startswith(f"-XX:ArchiveClassesAtExit={folder(environment)}/")
    assert class_archive.is_requested()
    assert options(environment) is None, "another JVM is writing"
    written(environment, b"\0\0\0\0class")
    assert options(environment, may_write=False) is None, "the JVM has not ended"
    written(environment)
    first = options(environment, may_write=False)
    assert first.startswith(f"-XX:SharedArchiveFile={folder(environment)}/")
    assert "-XX:+VerifySharedSpaces" in first
    assert options(environment) == first
    assert folder(environment).stat().st_mode & 0o777 == 0o700


def test_a_truncated_archive_is_replaced(environment):
    options(environment)
    written(environment)
    options(environment)
    (complete,) = folder(environment).glob("*.jsa")
    complete.write_bytes(MAGIC)
    assert options(environment, may_write=False) is None
    assert "ArchiveClassesAtExit" in options(environment)
    assert not complete.exists()


def test_a_part_of_a_killed_jvm_is_replaced(environment):
    options(environment)
    part = written(environment, b"")
    os.utime(part, (0, 0))
    assert "ArchiveClassesAtExit" in options(environment)


def test_another_jvm_has_another_archive_and_old_ones_are_deleted(environment):
    options(environment)
    written(environment)
    first = options(environment)
    Path(environment["JAVA_HOME"], "release").write_text("21")
    second = options(environment)
    assert "ArchiveClassesAtExit" in second
    (kept,) = folder(environment).glob("*.jsa")
    assert str(kept) in first
    written(environment)
    options(environment)
    os.utime(kept, (0, 0))
    Path(environment["JAVA_HOME"], "release").write_text("22!")
    assert "ArchiveClassesAtExit" in options(environment)
    assert not kept.exists()
    assert len(list(folder(environment).glob("*.jsa"))) == 1


@pytest.mark.parametrize("name", ["SPARK_CONF_DIR", "HADOOP_CONF_DIR", "JAVA_TOOL_OPTIONS", "SPARK_HOME"])
def test_variables_that_change_the_jvm_turn_it_off(environment, name):
    assert options({**environment, name: "/x"}) is None
    assert options({**environment, name: ""}) is not None


@pytest.mark.parametrize("name", ["spark.driver.extraClassPath", JAVA])
def test_settings_that_change_the_jvm_turn_it_off(environment, name):
    assert options(environment, settings={name: "x"}) is None


@pytest.mark.parametrize("named", ["", "relative", "/with blank", "/quote'"])
def test_a_folder_that_the_jvm_cannot_be_given(environment, named):
    assert options({**environment, FOLDER_VARIABLE: named}) is None


def test_the_folder_can_be_named(environment, tmp_path):
    assert str(tmp_path / "own") in options({**environment, FOLDER_VARIABLE: str(tmp_path / "own")})
    assert str(tmp_path / "xdg" / "use-spark") in options({**environment, "XDG_CACHE_HOME": str(tmp_path / "xdg")})


def test_others_cannot_put_classes_there(environment):
    options(environment)
    written(environment)
    folder(environment).chmod(0o777)
    assert options(environment) is None


def test_without_space_or_a_folder_nothing_is_written(environment, monkeypatch):
    Path(environment["HOME"], ".cache").write_text("a file")
    assert options(environment) is None
    Path(environment["HOME"], ".cache").unlink()
    monkeypatch.setattr(class_archive, "_FREE_BYTES", 2**80)
    assert options(environment) is None


def test_a_jvm_without_an_archive_of_its_own(environment):
    Path(environment["JAVA_HOME"], "lib", "server", "classes.jsa").unlink()
    assert options(environment) is None
    assert options({**environment, "JAVA_HOME": "", "PATH": "/nowhere"}) is None


def test_local_sessions_only(environment):
    local = local_session.with_archived_classes({}, environment, may_write=True)
    assert "ArchiveClassesAtExit" in local[JAVA]
    cluster = {"spark.master": "yarn"}
    assert local_session.with_archived_classes(cluster, environment, may_write=True) == cluster


@pytest.mark.slow
def test_commands_write_and_use_it(tmp_path):
    def inspect():
        return subprocess.run(
            [sys.executable, "-m", "sql_ext", "inspect", "--spark", str(tmp_path)],
            env={**os.environ, FOLDER_VARIABLE: str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )

    first = inspect()
    end = time.monotonic() + 300
    while (
        ClassArchive.of({}, {**os.environ, FOLDER_VARIABLE: str(tmp_path / "cache")}).options(may_write=False) is None
    ):
        assert time.monotonic() < end
        time.sleep(1)
    (archive,) = (tmp_path / "cache").iterdir()
    assert archive.stat().st_size > 50_000_000
    second = inspect()
    assert (first.returncode, first.stdout, first.stderr) == (second.returncode, second.stdout, second.stderr)
    assert len(first.stderr.splitlines()) == 1
