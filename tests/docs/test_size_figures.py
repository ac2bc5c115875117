"""The tables of "At size" show the figures of the benchmark, which hold what the page promises."""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from size_page import FIGURES, PAGE, page_with  # noqa: E402

figures = json.loads(FIGURES.read_text("utf-8"))


def test_the_page_has_the_figures_of_the_benchmark():
    page = PAGE.read_text("utf-8")
    assert page == page_with(page, figures)


def test_a_table_of_a_million_files_fits_a_driver_of_4_gb():
    steps = figures["table"]["1000000"]["use"]
    assert max(cost["heap"] for cost in steps.values()) < 4_000


def test_no_client_fails_and_the_memory_of_the_server_stays():
    clients = figures["clients"]
    assert (clients["clients"], clients["failures"]) == (50, 0)
    memory = clients["memory"]
    assert memory["after"]["heap"] <= 1.2 * memory["middle"]["heap"]
