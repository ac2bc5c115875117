"""The decision about the ranking of tables shows the recorded figures."""

import json

import pytest
from pages import ROOT

RESULTS = json.loads((ROOT / "bench" / "results" / "fleet.json").read_text(encoding="utf-8"))
TEXT = (ROOT / "docs" / "decisions" / "113-tables-are-ranked-by-saving-per-byte.md").read_text(encoding="utf-8")
NAMES = {"files": "file count (AutoComp)", "hindsight": "bound in hindsight"}


@pytest.mark.parametrize("policy", ["ours", "round robin", "files", "largest first", "hindsight"])
def test_savings_of_policies(policy):
    cells = [f"{100 * row['saving']:.1f} ± {100 * row['interval']:.1f}" for row in RESULTS["policies"][policy]]
    assert f"| {NAMES.get(policy, policy)} | {' | '.join(cells)} |" in TEXT


@pytest.mark.parametrize("change", [name for name in RESULTS["what counts"]["policies"] if name != "as measured"])
def test_what_counts(change):
    rows = RESULTS["what counts"]["policies"][change]
    cells = [f"{100 * row['saving']:.1f}, {100 * row['useless']:.1f}" for row in rows]
    assert f"| {change} | {' | '.join(cells)} |" in TEXT


def test_goals_are_as_the_page_says():
    ours = dict(zip(RESULTS["budgets"], RESULTS["policies"]["ours"], strict=True))
    assert ours[0.1]["saving"] >= 0.8
    assert all(row["useless"] <= 0.02 for budget, row in ours.items() if budget <= 0.2)
    assert all(count == RESULTS["repetitions"] for row in RESULTS["ours saves more"].values() for count in row)
