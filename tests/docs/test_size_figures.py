"""The tables of "At size" show the figures of the benchmark, which reach the goals of the page.

A part that has not been measured says so on the page.
"""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from size_page import FIGURES, PAGE, page_with  # noqa: E402

# How many tables of the page show each part.
TABLES = {"table": 2, "clients": 1, "workers": 1}


@pytest.fixture(scope="module")
def figures():
    return json.loads(FIGURES.read_text("utf-8")) if FIGURES.exists() else {}


@pytest.fixture
def part(figures):
    def of(name):
        return figures[name] if name in figures else pytest.skip(f"make bench-size has not measured the {name} yet")

    return of


def test_the_page_has_the_figures_of_the_benchmark(figures):
    page = PAGE.read_text("utf-8")
    assert page == page_with(page, figures)
    assert page.count("Not measured yet.") == sum(count for name, count in TABLES.items() if name not in figures)


def test_a_table_of_a_million_files_fits_a_driver_of_4_gb(part):
    steps = part("table")["1000000"]["use"]
    assert not [step for step, cost in steps.items() if "error" in cost]
    assert max(cost["heap"] for cost in steps.values()) < 4_000


def test_no_client_fails_and_the_memory_of_the_server_stays(part):
    clients = part("clients")
    assert (clients["clients"], clients["failures"]) == (50, 0)
    assert clients["minutes"] >= 10
    memory = clients["memory"]
    assert memory["after"]["heap"] <= 1.2 * memory["middle"]["heap"]


def test_two_workers_are_faster_than_one(part):
    assert min(part("workers")["times"].values()) >= 1.6
