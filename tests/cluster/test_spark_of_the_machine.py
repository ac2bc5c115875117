"""The main job on a Spark outside the virtual environment, with Delta among its jars, as on managed platforms."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from sql_ext.configuration import configure
from sql_ext.installed_versions import installed_versions

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(pyspark.__file__).parent
JOB_SECONDS = 1500


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A Spark laid out as its archive is unpacked, made of pip's: bin, jars, and its Python below python."""
    home = tmp_path_factory.mktemp("spark")
    (home / "jars").mkdir()
    for jar in (PACKAGE / "jars").glob("*.jar"):
        (home / "jars" / jar.name).symlink_to(jar)
    for jar in configure(pyspark.sql.SparkSession.Builder())._options["spark.jars"].split(","):
        if not Path(jar).name.startswith("use-shim"):
            (home / "jars" / Path(jar).name).symlink_to(jar)
    shutil.copytree(PACKAGE / "bin", home / "bin")
    shutil.copytree(PACKAGE, home / "python" / "pyspark", ignore=shutil.ignore_patterns("jars", "bin", "data"))
    shutil.copytree(PACKAGE / "python" / "lib", home / "python" / "lib")
    return home


def environment_of(home):
    py4j = next((home / "python" / "lib").glob("py4j-*-src.zip"))
    return {
        **os.environ,
        "SPARK_HOME": str(home),
        "PYTHONPATH": f"{home / 'python'}:{py4j}:{ROOT}",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def test_the_main_job(home, tmp_path):
    environment = environment_of(home)
    found = installed_versions(environment)
    assert (found.has_delta, found.spark) == (True, pyspark.__version__)
    use = (sys.executable, "-m", "sql_ext")
    doctor = subprocess.run(
        [*use, "doctor", "--no-session"], env=environment, capture_output=True, text=True, check=False
    )
    assert f"ok    versions     Spark {found.spark}, Delta {found.delta}" in doctor.stdout
    conf = subprocess.run([*use, "conf"], env=environment, capture_output=True, text=True, check=True).stdout
    assert "spark.jars.packages" not in conf
    (tmp_path / "use.conf").write_text(conf, encoding="utf-8")
    submit = (
        str(home / "bin" / "spark-submit"),
        "--master",
        "local[2]",
        "--properties-file",
        str(tmp_path / "use.conf"),
    )
    small = ("--conf", "spark.ui.enabled=false", "--conf", "spark.sql.shuffle.partitions=2")
    job = (str(ROOT / "examples" / "cluster_job.py"), "--folder", str(tmp_path / "data"))
    report = tmp_path / "report.json"
    done = subprocess.run(
        [*submit, *small, *job, "--report", str(report)],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=JOB_SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(report.read_text(encoding="utf-8"))
