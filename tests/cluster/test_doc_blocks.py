"""Blocks of the docs that need a cluster run on one, as they stand but for its address and a folder."""

import sys

import pytest
from pages import blocks, pages
from standalone import StandaloneCluster

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

FOUND = [
    pytest.param(block.code, id=block.place)
    for page in pages()
    for block in blocks(page)
    if block.language == "python" and "cluster" in block.info.split()
]


def test_there_are_some():
    assert FOUND


@pytest.mark.parametrize("code", FOUND)
def test_block(processes, tmp_path, code):
    cluster = StandaloneCluster(processes)
    code = code.replace("spark://host:7077", cluster.url).replace("/shared", str(tmp_path / "shared"))
    job = processes.start("block", sys.executable, "-c", code)
    assert job.wait(600) == 0, processes.log("block")[-5000:]
