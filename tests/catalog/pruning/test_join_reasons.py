"""The reasons why joins skip no files: those of the shim, of Python and of the page on SQL. No Spark."""

import re
from pathlib import Path

from catalog.pruning.join_reasons import ADVICE, JoinReason

ROOT = Path(__file__).resolve().parents[3]


def test_the_shim_has_the_reasons_of_python():
    read = ROOT / "jars-build/src/main/scala/io/usespark/read"
    sources = [*read.glob("Join*.scala"), read / "KeyRanges.scala"]
    codes = {code for source in sources for code in re.findall(r'"([A-Z]+(?:_[A-Z]+)*)"', source.read_text())}
    # Whether a job pays is Python's decision.
    assert codes | {JoinReason.JOB_TOO_LARGE.value} == {reason.value for reason in JoinReason}


def test_each_reason_says_what_would_help():
    assert set(ADVICE) == set(JoinReason)
    assert all(text.endswith(".") for text in ADVICE.values())


def test_the_page_on_sql_has_each_reason_once():
    page = (ROOT / "docs/sql.md").read_text(encoding="utf-8")
    section = page.split("\n## Joins\n")[1].split("\n## ")[0]
    assert re.findall(r"^\| `([A-Z_]+)` \|", section, re.MULTILINE) == [reason.value for reason in JoinReason]
