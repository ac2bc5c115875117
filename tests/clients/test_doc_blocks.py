"""Blocks of README and docs whose info string ends with `server` run against one, as they stand."""

import os
import re
import subprocess
import sys

import pytest
from server_process import ROOT
from sql_clients import SPARK_HOME

PLACES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
BLOCK = re.compile(r"^```(python|sh|java) server\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FOUND = [
    pytest.param(found[1], found[2], id=f"{place.stem}-{number}-{found[1]}")
    for place in PLACES
    for number, found in enumerate(BLOCK.finditer(place.read_text(encoding="utf-8")), 1)
]


def command(kind: str, text: str, folder) -> list[object]:
    if kind == "python":
        return [sys.executable, "-W", "error::SyntaxWarning", "-c", text]
    if kind == "sh":
        return ["bash", "-euo", "pipefail", "-c", text]
    program = folder / "Example.java"
    program.write_text(text, encoding="utf-8")
    return ["java", f"-Duser.home={folder}", "-cp", SPARK_HOME / "jars" / "*", program]


def test_there_are_some():
    assert len(FOUND) >= 7


@pytest.mark.parametrize(("kind", "text"), FOUND)
def test_block(server, tmp_path, kind, text):
    """The ports that the docs name become the server's, and its token lies where the docs say."""
    home = tmp_path / ".use-spark"
    home.mkdir(mode=0o700)
    (home / "token").write_text(server.token + "\n")
    text = text.replace("10000", str(server.jdbc_port)).replace("15002", str(server.connect_port))
    path = f"{SPARK_HOME / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run(
        [str(part) for part in command(kind, text, tmp_path)],
        check=False,
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path), "PATH": path, "SPARK_HOME": str(SPARK_HOME)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert "Error" not in done.stderr, done.stderr
    assert done.stdout.strip()
