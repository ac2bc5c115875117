"""The checks of the doctor, each on a machine made up for it; no Spark."""

import json
import os
import socket
import stat
import zipfile

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from catalog.errors import TableError, WriteDeniedError
from sql_ext import delta_jars as jars_of_delta
from sql_ext.commands import doctor
from sql_ext.commands.command_line import cli
from sql_ext.commands.doctor_checks import folders, live_session, network, programs, spark_setup
from sql_ext.commands.doctor_checks.finding import FAIL, OK, WARN, Finding
from sql_ext.commands.session_settings import SessionSettings
from sql_ext.configuration import configure
from sql_ext.installed_versions import installed_versions
from sql_ext.spark_defaults import defaults_of

PACKAGES = "spark.jars.packages"
COORDINATES = "io.delta:delta-spark_4.2_2.13:4.4.0"


@pytest.mark.parametrize(("found", "state"), [((3, 10, 0), OK), ((3, 13, 1), OK), ((3, 9, 18), FAIL), ((2, 7), FAIL)])
def test_python(found, state):
    assert programs.python_version(found).state == state


@pytest.mark.parametrize(
    ("spark", "scala", "delta", "state", "said"),
    [
        ("4.2.0", "2.13.18", "4.4.0", OK, "Spark 4.2.0, Delta 4.4.0, Scala 2.13.18"),
        ("4.0.2", None, "4.0.0", OK, "Spark 4.0.2, Delta 4.0.0"),
        ("4.1.2", "2.13.17", "4.2.0", OK, "Delta 4.2.0"),
        ("4.2.0", "2.13.18", "4.3.1", FAIL, "Spark 4.1 with Delta 4.1 to 4.4"),
        ("3.5.6", "2.13.8", "3.3.2", FAIL, "Spark 4.0 with Delta 4.0 to 4.4"),
        ("4.0.2", "2.12.18", "4.0.0", FAIL, "Scala 2.13"),
    ],
)
def test_the_pair_of_spark_and_delta(spark, scala, delta, state, said):
    finding = spark_setup.versions(spark, scala, delta)
    assert finding.state == state
    assert said in f"{finding.message} {finding.advice}"


def test_distributions_that_share_a_package_name_are_a_warning():
    assert programs.package_names({}).state == OK
    finding = programs.package_names({"catalog": ["a", "b"]})
    assert (finding.state, finding.message) == (WARN, "catalog also comes from a, b")


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ('openjdk version "17.0.15" 2025-04-15', OK),
        ('openjdk version "21" 2023-09-19', OK),
        ('java version "1.8.0_392"', FAIL),
        ('openjdk version "11.0.2"', FAIL),
        ('openjdk version "25-ea"', FAIL),
        ("command not found", FAIL),
    ],
)
def test_java_versions(text, state):
    finding = programs.java_version(text, "/usr/bin/java")
    assert finding.state == state
    assert ("17 or 21" in (finding.advice or "")) == (state == FAIL)


def test_java_is_looked_for_where_spark_looks(tmp_path):
    missing = programs.java({"JAVA_HOME": str(tmp_path), "PATH": os.environ["PATH"]})
    assert (missing.state, missing.message) == (FAIL, f"no java in JAVA_HOME={tmp_path}")
    assert programs.java({"PATH": str(tmp_path)}).message == "no java on PATH"
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'openjdk version \"17.0.1\"' >&2\n", encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    found = programs.java({"JAVA_HOME": str(tmp_path), "PATH": os.environ["PATH"]})
    assert (found.state, found.message) == (OK, f"{program} is Java 17")


@pytest.mark.parametrize(("given", "state"), [(None, OK), ("true", OK), ("True", OK), ("false", FAIL), ("0", FAIL)])
def test_pinned_threads(given, state):
    environment = {} if given is None else {"PYSPARK_PIN_THREAD": given}
    assert spark_setup.pinned_threads(environment).state == state


def spark(folder, version):
    (folder / "jars").mkdir(parents=True)
    (folder / "jars" / f"spark-core_2.13-{version}.jar").touch()
    return folder


def test_which_spark(tmp_path):
    package = spark(tmp_path / "pip", "4.2.0")
    same, other = spark(tmp_path / "same", "4.2.1"), spark(tmp_path / "other", "3.5.1")

    def found(home=None):
        return spark_setup.spark_home({} if home is None else {"SPARK_HOME": str(home)}, package, "4.2.0")

    assert found().state == OK
    assert found(package).state == OK
    assert found(same).state == WARN
    wrong = found(other)
    assert wrong.state == FAIL
    assert "3.5.1" in wrong.message
    assert "Spark 4.0 with Delta 4.0 to 4.4" in (wrong.advice or "")
    assert found(tmp_path).state == FAIL
    mixed = found(spark(tmp_path / "mixed", "4.1.2"))
    assert (mixed.state, "pip install pyspark==4.1.2" in (mixed.advice or "")) == (FAIL, True)


def jar(path, version="0.1.0", name="io/usespark/UseSessionExtension.class"):
    with zipfile.ZipFile(path, "w") as content:
        content.writestr("META-INF/MANIFEST.MF", f"Manifest-Version: 1.0\r\nImplementation-Version: {version}\r\n")
        content.writestr(name, b"")
    return path


def test_the_shim(tmp_path):
    assert spark_setup.shim(jar(tmp_path / "a.jar"), "0.1.0").state == OK
    assert "missing" in spark_setup.shim(tmp_path / "none.jar", "0.1.0").message
    assert "0.0.9" in spark_setup.shim(jar(tmp_path / "old.jar", "0.0.9"), "0.1.0").message
    assert "lacks" in spark_setup.shim(jar(tmp_path / "other.jar", name="a.class"), "0.1.0").message
    (tmp_path / "part.jar").write_bytes(b"PK\x03\x04")
    part = spark_setup.shim(tmp_path / "part.jar", "0.1.0")
    assert (part.state, "cannot be read" in part.message) == (FAIL, True)


def test_strangers_on_the_class_path(tmp_path):
    home = spark(tmp_path / "spark", "4.2.0")
    assert [f.state for f in spark_setup.class_path({}, home, False)] == [OK]
    (home / "conf").mkdir()
    (home / "conf" / "spark-defaults.conf").write_text(
        "# spark.driver.extraClassPath /no/delta-spark_2.13-1.jar\n"
        "spark.driver.extraClassPath   /opt/a.jar:/opt/delta-spark_2.13-3.1.0.jar\n",
        encoding="utf-8",
    )
    (home / "jars" / "delta-storage-2.4.0.jar").touch()
    found = spark_setup.class_path({"SPARK_DIST_CLASSPATH": "/x/use-shim-old.jar:/y"}, home, False)
    assert [f.state for f in found] == [WARN] * 3
    assert [f.message.rpartition(" ")[2] for f in found] == [
        "use-shim-old.jar",
        "delta-spark_2.13-3.1.0.jar",
        "delta-storage-2.4.0.jar",
    ]


@pytest.mark.parametrize(
    "text", ["a.b c d\n", "a.b=c d\n", "a.b: c d\n", "a.b\tc d\n", "  a.b  =  c d  \n", "\n#x y\na.b c d"]
)
def test_defaults_as_spark_reads_them(tmp_path, text):
    (tmp_path / "f").write_text(text, encoding="utf-8")
    assert defaults_of(tmp_path / "f") == {"a.b": "c d"}


def test_where_the_jars_of_delta_come_from(tmp_path, monkeypatch):
    monkeypatch.setattr(jars_of_delta, "_account_home", lambda: None)
    home, environment = spark(tmp_path / "spark", "4.2.0"), {"HOME": str(tmp_path)}
    file = "delta-spark_4.2_2.13-4.4.0.jar"

    def look(settings=None):
        return spark_setup.delta_jars(environment, home, COORDINATES, settings or {})

    assert look().state == WARN
    assert "docs/deploy.md" in (look().advice or "")
    assert look({"spark.jars": f"/a.jar, /opt/{file}"}).state == OK
    ivy = tmp_path / "ivy" / "jars"
    ivy.mkdir(parents=True)
    (ivy / f"io.delta_{file}").touch()
    assert look().state == WARN
    assert look({"spark.jars.ivy": str(tmp_path / "ivy")}).state == OK
    (home / "jars" / file).touch()
    assert look().state == OK


def test_delta_given_as_files_is_not_fetched(tmp_path, monkeypatch):
    monkeypatch.setattr(jars_of_delta, "_account_home", lambda: str(tmp_path))  # no cache of Ivy
    _, name, version = installed_versions({}).delta_coordinates.split(":")
    builder = SparkSession.Builder().config("spark.jars", f"/opt/a.jar,/opt/io.delta_{name}-{version}.jar")
    options = configure(builder)._options
    assert "spark.jars.packages" not in options
    assert options["spark.jars"].split(",")[:1] == ["/opt/a.jar"]
    assert options["spark.jars"].endswith(installed_versions({}).shim)
    assert "delta-spark" in configure(SparkSession.Builder().config("spark.jars", "/a.jar"))._options[PACKAGES]


def test_the_network(monkeypatch):
    assert network.loopback().state == OK
    assert network.host_name({}, "localhost").state == OK
    assert network.host_name({"SPARK_LOCAL_IP": "127.0.0.1"}, "no such name").state == OK

    def unknown_to_all(name):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "gethostbyname", unknown_to_all)
    unknown = network.host_name({}, "box")
    assert (unknown.state, "SPARK_LOCAL_IP" in (unknown.advice or "")) == (FAIL, True)


def test_ports():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert network.ports(port, 1).state == WARN
    assert network.ports(port, 1).state == OK


def test_folders(tmp_path):
    found = folders.check_folders({"SPARK_LOCAL_DIRS": f"{tmp_path}/a,{tmp_path}/b"}, {}, tmp_path / "warehouse")
    assert [(f.check, f.state) for f in found] == [("scratch", OK), ("scratch", OK), ("warehouse", OK)]
    assert (tmp_path / "warehouse").is_dir()
    assert not (tmp_path / "a").exists()
    (tmp_path / "file").touch()
    assert folders.writable("scratch", tmp_path / "file" / "below").state == FAIL
    assert folders.claimed(tmp_path / "file").state == FAIL
    remote = folders.check_folders(
        {}, {"spark.sql.warehouse.dir": "s3a://bucket/wh", "spark.local.dir": str(tmp_path)}, None
    )
    assert remote[-1].state == OK
    for place in (f"file:{tmp_path}", f"file://{tmp_path}"):
        local = folders.check_folders({}, {"spark.sql.warehouse.dir": place}, None)[-1]
        assert (local.state, f"{tmp_path} is writable" in local.message) == (OK, True)


def test_a_full_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(folders.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 10**9}))
    assert folders.writable("scratch", tmp_path).state == WARN


def test_this_machine_without_a_session():
    """All but the session, as the command shows it."""
    result = CliRunner().invoke(cli, ["doctor", "--no-session"])
    lines = result.stdout.splitlines()
    assert result.exit_code == any(line.startswith(FAIL) for line in lines)
    assert {"python", "java", "spark", "shim", "threads", "loopback"} <= {line.split()[1] for line in lines}
    rows = CliRunner().invoke(cli, ["doctor", "--no-session", "--json"]).stdout.splitlines()
    assert [set(json.loads(row)) for row in rows] == [{"check", "state", "message", "advice"}] * len(rows)


def test_no_session_where_something_failed_before(monkeypatch):
    monkeypatch.setenv("PYSPARK_PIN_THREAD", "false")
    monkeypatch.setattr(live_session, "session_findings", None)
    result = CliRunner().invoke(cli, ["doctor"])
    assert result.exit_code == 1
    assert "fail  threads" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("warn  session      not checked")


def test_the_session_is_the_last_check(monkeypatch):
    monkeypatch.setattr(doctor, "findings_without_session", lambda *_: iter([Finding("a", WARN, "m", "do")]))
    monkeypatch.setattr(
        live_session, "session_findings", lambda session_settings, tables: iter([Finding("s", FAIL, str(tables))])
    )
    result = CliRunner().invoke(cli, ["doctor", "--table=t", "--table=/u"])
    assert result.stdout.splitlines() == ["warn  a            m -> do", "fail  s            ('t', '/u')"]
    assert result.exit_code == 1


def test_a_session_that_does_not_start(monkeypatch):
    def refuse(session_settings):
        raise RuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited\nmore")

    monkeypatch.setattr(live_session, "session", refuse)
    (finding,) = live_session.session_findings(SessionSettings({}), ())
    assert (finding.state, finding.message) == (FAIL, "[JAVA_GATEWAY_EXITED] Java gateway process exited")


@pytest.mark.parametrize("error", [TableError.missing("t", ""), WriteDeniedError("No file can be written below /t.")])
def test_a_table_that_cannot_be_written(monkeypatch, error):
    class Denied:
        @staticmethod
        def find(session, name):
            raise error

    monkeypatch.setattr(live_session, "ManagedTable", Denied)
    finding = live_session.table_finding(None, "t")
    assert finding.state == FAIL
    assert error.code in finding.message
    assert finding.advice
