"""The table of predictions shows the figures of the benchmark, which hold what the issue of a diagnosis promises."""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from diagnosis_page import FIGURES, PAGE, parts_of  # noqa: E402
from marked_pages import page_with  # noqa: E402


def test_the_page_has_the_figures_of_the_benchmark():
    page = PAGE.read_text("utf-8")
    assert page == page_with(page, parts_of(json.loads(FIGURES.read_text("utf-8"))))


def test_at_least_ten_tables_are_predicted_within_a_fifth():
    figures = json.loads(FIGURES.read_text("utf-8"))
    assert len(figures) >= 10
    for one in figures:
        for read in one["reads"]:
            assert abs(read["predicted"] / read["measured"] - 1) <= 0.2, (one["name"], read)
            assert read["measured"] <= read["today"] or read["predicted"] >= read["today"], (one["name"], read)
