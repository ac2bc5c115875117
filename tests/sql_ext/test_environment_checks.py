"""Environments in which Spark cannot start: each is one line, before a JVM starts."""

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from catalog.errors import InvalidArgumentError, NotSupportedError, UnusableJavaError
from sql_ext.environment_checks import check_environment

PACKAGE = Path(pyspark.__file__).parent


def _java(folder, script):
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(script)
    java.chmod(0o755)


def _spark(folder, version):
    (folder / "jars").mkdir(parents=True)
    (folder / "jars" / f"spark-core_2.13-{version}.jar").touch()


def _jdk(folder, version="17.0.9"):
    _java(folder, "#!/bin/sh\nexit 1\n")
    (folder / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')


def test_a_usable_environment(tmp_path):
    _jdk(tmp_path)
    usable = {"JAVA_HOME": str(tmp_path)}
    check_environment(usable)
    check_environment({**usable, "SPARK_HOME": str(PACKAGE), "PYSPARK_SUBMIT_ARGS": "--master local pyspark-shell"})


@pytest.mark.parametrize("text", ["", " ", "--master local[2]"])
def test_arguments_that_start_no_shell(tmp_path, text):
    with pytest.raises(InvalidArgumentError, match=r"PYSPARK_SUBMIT_ARGS = '.*unset it"):
        check_environment({"PYSPARK_SUBMIT_ARGS": text})


def test_another_spark_than_that_of_pyspark(tmp_path):
    other = "4.0.1" if not pyspark.__version__.startswith("4.0.") else "4.1.1"
    _spark(tmp_path / "other", other)
    with pytest.raises(
        NotSupportedError, match=rf"Spark {other}, the imported pyspark is {pyspark.__version__}; unset"
    ):
        check_environment({"SPARK_HOME": str(tmp_path / "other")})
    _spark(tmp_path / "old", "3.5.1")
    with pytest.raises(NotSupportedError, match=r"SPARK_HOME=.*old is Spark 3\.5\.1"):
        check_environment({"SPARK_HOME": str(tmp_path / "old")})
    with pytest.raises(NotSupportedError, match="contains no Spark; unset SPARK_HOME"):
        check_environment({"SPARK_HOME": str(tmp_path / "none")})


def test_an_old_java_is_known_from_its_release_file(tmp_path):
    _jdk(tmp_path, "1.8.0_392")
    with pytest.raises(UnusableJavaError, match="Java 8; install"):
        check_environment({"JAVA_HOME": str(tmp_path)})


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (None, "no java in JAVA_HOME={home}"),
        ("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n", "{home}/bin/java is Java 11"),
    ],
)
def test_a_missing_or_old_java_is_one_line(tmp_path, script, message):
    if script:
        _java(tmp_path, script)
    done = subprocess.run(
        [sys.executable, "-m", "sql_ext", "inspect", "some_table"],
        env={**os.environ, "JAVA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    assert line.startswith(
        f"use-spark: USE_UNUSABLE_JAVA: Spark cannot start: {message.format(home=tmp_path)}; install"
    )
