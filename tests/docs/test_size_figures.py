"""The tables of "At size" show the figures of the benchmark. A part that has not been measured says so."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from marked_pages import page_with  # noqa: E402
from size_page import FIGURES, PAGE, parts_of  # noqa: E402

# How many tables of the page show each part.
TABLES = {"table": 2, "clients": 1, "workers": 1}


@pytest.fixture(scope="module")
def figures():
    return json.loads(FIGURES.read_text("utf-8")) if FIGURES.exists() else {}


def test_the_page_has_the_figures_of_the_benchmark(figures):
    page = PAGE.read_text("utf-8")
    assert page == page_with(page, parts_of(figures))
    assert page.count("Not measured yet.") == sum(count for name, count in TABLES.items() if name not in figures)
