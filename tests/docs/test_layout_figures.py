"""README and the comparison show the recorded figures of the layouts."""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from layout_page import FIGURES, PAGE, parts_of, sentences_of  # noqa: E402
from marked_pages import page_with  # noqa: E402

RECORDED = json.loads(FIGURES.read_text("utf-8"))


def test_the_comparison_has_the_recorded_figures():
    page = PAGE.read_text("utf-8")
    assert page == page_with(page, parts_of(RECORDED)), "run python bench/layout_page.py"


def test_readme_has_the_recorded_figures():
    readme = " ".join((ROOT / "README.md").read_text("utf-8").split())
    assert [sentence for sentence in sentences_of(RECORDED) if sentence not in readme] == []
