"""The lines of Spark, the choice of the shim, and the sources of each."""

import importlib.util
import sys
from pathlib import Path

import left_out
import pytest

from catalog.errors import NotSupportedError
from catalog.jvm.spark_lines import LINES, UnsupportedVersionError, delta_coordinates, line_of, pinned, shim_name
from sql_ext import configuration
from sql_ext.installed_versions import InstalledVersions, installed_versions

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("spark", "delta", "jar", "coordinates"),
    [
        ("4.0.2", "4.0.0", "use-shim-4.0-delta-4.0.jar", "io.delta:delta-spark_2.13:4.0.0"),
        ("4.0.5", "4.4.0", "use-shim-4.0-delta-4.4.jar", "io.delta:delta-spark_4.0_2.13:4.4.0"),
        ("4.1.2", "4.2.0", "use-shim-4.1-delta-4.2.jar", "io.delta:delta-spark_4.1_2.13:4.2.0"),
        ("4.2.1", "4.4.1", "use-shim-4.2-delta-4.4.jar", "io.delta:delta-spark_4.2_2.13:4.4.1"),
    ],
)
def test_a_pair_has_a_shim(spark, delta, jar, coordinates):
    assert shim_name(spark, delta) == jar
    assert delta_coordinates(line_of(spark), delta) == coordinates


@pytest.mark.parametrize(
    ("spark", "delta"), [("3.5.6", "3.3.2"), ("4.3.0", "4.4.0"), ("4.2.0", "4.3.1"), ("4.1.0", "4.0.1"), ("5", "5")]
)
def test_other_versions_are_refused_in_one_sentence_that_names_the_lines(spark, delta):
    with pytest.raises(UnsupportedVersionError) as error:
        shim_name(spark, delta)
    text = str(error.value)
    assert text.startswith(f"USE for Spark does not run on Spark {spark}")
    assert all(line.supports() in text for line in LINES)
    assert "\n" not in text


def spark_of(folder, spark, delta=None):
    (folder / "jars").mkdir(parents=True)
    (folder / "jars" / f"spark-core_2.13-{spark}.jar").touch()
    if delta:
        (folder / "jars" / f"delta-spark_4.1_2.13-{delta}.jar").touch()
    return {"SPARK_HOME": str(folder)}


def test_the_spark_that_would_start_decides(tmp_path):
    platform = installed_versions(spark_of(tmp_path / "a", "4.1.2", "4.2.0"))
    assert platform == InstalledVersions("4.1.2", "4.2.0", has_delta=True)
    with pytest.raises(NotSupportedError, match=r"does not run on Spark 3\.5\.6"):
        installed_versions(spark_of(tmp_path / "b", "3.5.6"))
    with pytest.raises(NotSupportedError, match=r"Spark 4\.1\.2 with Delta 4\.0\.1"):
        installed_versions(spark_of(tmp_path / "c", "4.1.2", "4.0.1"))


def test_delta_among_sparks_jars_is_not_downloaded(tmp_path, monkeypatch):
    for key, value in spark_of(tmp_path, "4.1.2", "4.2.0").items():
        monkeypatch.setenv(key, value)
    jars = tmp_path / "shims"
    jars.mkdir()
    (jars / "use-shim-4.1-delta-4.2.jar").touch()
    monkeypatch.setattr(configuration, "JARS", jars)
    conf = configuration.spark_conf()
    assert conf["spark.jars"] == str(jars / "use-shim-4.1-delta-4.2.jar")
    assert "spark.jars.packages" not in conf


def build_shim():
    spec = importlib.util.spec_from_file_location("build_shim", ROOT / "jars-build" / "build_shim.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_each_pair_takes_the_newest_file_that_is_not_newer():
    shim = build_shim()
    pairs = shim.all_pairs()
    assert len({pair.jar for pair in pairs}) == len(pairs) == sum(len(line.deltas) for line in LINES)

    def folders(spark, delta, name):
        found = [file for file in shim.Pair(spark, delta).sources() if file.stem == name]
        return {next(part for part in file.parts if part.startswith("scala")) for file in found}

    assert folders("4.0.0", "4.0.1", "ParameterParser") == {"scala-spark-4.0"}
    assert folders("4.2.0", "4.4.0", "ParameterParser") == {"scala-spark-4.1"}
    assert folders("4.1.0", "4.1.0", "ExistingTables") == {"scala-delta-4.0"}
    assert folders("4.1.0", "4.4.0", "ExistingTables") == {"scala-delta-4.2"}
    assert folders("4.0.0", "4.0.1", "UseCatalog") == {"scala"}


def test_what_differs_is_a_small_part():
    """At most 5 % of the Scala that a session loads differs by line."""
    shim = build_shim()
    for pair in shim.all_pairs():
        lines = {True: 0, False: 0}
        for file in pair.sources():
            if file.suffix == ".scala":
                lines["scala-" in file.as_posix()] += len(file.read_text(encoding="utf-8").splitlines())
        assert lines[True] < 0.05 * lines[False]


def test_requirements_of_an_edge():
    assert pinned("4.0", "oldest") == "pyspark==4.0.0 delta-spark==4.0.1"
    assert pinned("4.1", "newest") == "pyspark==4.1.4 delta-spark==4.4.0"


def test_tests_that_are_left_out_exist():
    for each in left_out.LIST:
        file, _, name = each.test.partition("::")
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8")
    assert left_out.left_out("4.0.0", "4.0.1") == list(left_out.LIST)
    assert left_out.left_out("4.1.0", "4.4.0") == left_out.left_out("4.2.1", "4.4.0") == []
