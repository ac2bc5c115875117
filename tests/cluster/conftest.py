"""Processes of the tests on clusters, and the cluster's own module made importable."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))


@pytest.fixture
def processes(tmp_path):
    from standalone import Processes

    with Processes(tmp_path) as started:
        yield started
