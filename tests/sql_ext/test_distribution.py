"""The wheel in an environment of its own: what a user gets from ``pip install``."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from reader_tables import stored_tables

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow


def _run(*command, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    _run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, cwd=ROOT)
    return next(folder.glob("*.whl"))


def test_the_readme_of_the_package_has_no_link_into_the_repository(wheel):
    with zipfile.ZipFile(wheel) as archive:
        name = next(n for n in archive.namelist() if n.endswith("/METADATA"))
        text = archive.read(name).decode()
    assert "[automatic optimization]" not in text
    assert re.findall(r"\]\((?![a-z]+:|#)[^)]+\)", text) == []


def test_the_wheel_alone_brings_no_spark(wheel, tmp_path):
    """Help and the health of a path work, and the rest says how to install Spark."""
    environment = tmp_path / "venv"
    _run(sys.executable, "-m", "venv", environment)
    python, command = environment / "bin" / "python", environment / "bin" / "use-spark"
    _run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    packages = _run(python, "-m", "pip", "list", "--disable-pip-version-check").lower()
    assert "deltalake" in packages
    assert "spark " not in packages.replace("use-spark ", "")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYSPARK", "SPARK"))}
    table = next(table for table in stored_tables(tmp_path / "tables") if table.name == "indexed")
    assert "optimize" in _run(command, "--help", cwd=tmp_path, env=clean)
    assert "sample_1_percent" in _run(command, "health", table.path, cwd=tmp_path, env=clean)
    refused = subprocess.run(
        [command, "optimize", "--table", table.path], cwd=tmp_path, env=clean, capture_output=True, check=False
    )
    assert (refused.returncode, b"use-spark[spark]" in refused.stderr) == (1, True)


def test_the_quickstart_of_the_readme_runs_from_the_wheel(wheel, tmp_path):
    environment = tmp_path / "venv"
    _run(sys.executable, "-m", "venv", environment)
    python = environment / "bin" / "python"
    _run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{wheel}[spark]")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    quickstart, shown = re.search(
        r"## From Python\n\n```python\n(.*?)```\n\n```text output\n(.*?)```", readme, re.DOTALL
    ).groups()
    (tmp_path / "quickstart.py").write_text(quickstart, encoding="utf-8")
    # Nothing of this checkout may be found: not its folder, not its settings.
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYSPARK", "SPARK"))}
    printed = _run(
        python,
        "quickstart.py",
        cwd=tmp_path,
        env={**clean, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": str(python)},
    )
    assert [line.split(" from ")[0] for line in printed.splitlines() if " rows from " in line] == [
        line.split(" from ")[0] for line in shown.splitlines()
    ]
