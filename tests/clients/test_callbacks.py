"""The server on which the JVM calls Python, when PySpark has started its own one first."""

import os
import subprocess
import sys

from server_process import ROOT
from sql_clients import PROGRAMS


def test_a_server_without_a_token_is_replaced(tmp_path):
    """Streams go on, strangers that are connected reach nothing, and a flood keeps nobody out."""
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests" / "support")])
    done = subprocess.run(
        [sys.executable, PROGRAMS / "callbacks.py", tmp_path],
        env={**os.environ, "PYTHONPATH": paths},
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "all held"
