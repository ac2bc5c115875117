"""Tables written on one line of Spark are read, sampled, optimized and checked on every other, both ways.

Each line has its own environment, which ``make test-lines`` makes; lines without one are left out.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from catalog.jvm.spark_lines import LINES

pytestmark = [pytest.mark.slow, pytest.mark.cluster]

ROOT = Path(__file__).resolve().parents[2]
PYTHONS = {
    line.name: ROOT / (".venv" if line is LINES[-1] else f".venv-{line.name}-oldest") / "bin" / "python"
    for line in LINES
}
AVAILABLE = [name for name, python in PYTHONS.items() if python.exists()]


def run(line, action, folder):
    done = subprocess.run(
        [str(PYTHONS[line]), str(ROOT / "tests" / "support" / "line_table.py"), action, str(folder)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": str(PYTHONS[line])},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-5000:]
    assert f'"spark": "{line}.' in done.stdout


@pytest.mark.parametrize("writer", AVAILABLE)
def test_a_table_goes_from_line_to_line(writer, tmp_path):
    first = tmp_path / "first"
    first.mkdir()
    run(writer, "write", first)
    for reader in AVAILABLE:
        if reader != writer:
            copy = tmp_path / reader
            shutil.copytree(first, copy)
            run(reader, "use", copy)
