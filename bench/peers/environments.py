"""The Python environments of the systems: Spark of their own, and nothing of each other's."""

from __future__ import annotations

import functools
import subprocess
import venv
from pathlib import Path

from peers.systems import DELTA_ENVIRONMENT, HUDI_ENVIRONMENT, ICEBERG_ENVIRONMENT

ROOT = Path(__file__).resolve().parents[2]
# The newest release of Hudi that can be resolved runs on this Spark.
BARE = {ICEBERG_ENVIRONMENT: "pyspark==4.1.*", HUDI_ENVIRONMENT: "pyspark==3.5.*"}
LINE = "4.1"


@functools.cache
def python_of(environment: str) -> Path:
    """Returns the interpreter of an environment, which is made if need be."""
    if environment == DELTA_ENVIRONMENT:
        # Also if it is there: the shim may be older than its sources.
        subprocess.run(["make", "environment", f"LINE={LINE}", "EDGE=newest"], cwd=ROOT, check=True)
        return ROOT / f".venv-{LINE}-newest" / "bin" / "python"
    folder = ROOT / "build" / "bench" / environment
    made = folder / ".installed"
    if not made.exists():
        print(f"making {folder.name}", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        # setuptools: this Spark still imports distutils.
        install = [folder / "bin" / "pip", "install", "--quiet", "setuptools<81", BARE[environment]]
        subprocess.run(list(map(str, install)), check=True)
        made.touch()
    return folder / "bin" / "python"
