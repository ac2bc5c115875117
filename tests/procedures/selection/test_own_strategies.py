"""A strategy of the user's own, as the documentation writes it."""

import re
from pathlib import Path

import pytest
from tables import NUMBERS, numbers

import sql_ext
from catalog.errors import UseError
from procedures.process.application import application

PAGE = Path(__file__).resolve().parents[3] / "docs" / "own-procedures.md"


@pytest.fixture
def registered():
    """What the example registers, taken away afterwards."""
    code = next(
        block for block in re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL) if "Strategy" in block
    )
    exec(code[: code.index("spark.sql(")], {})
    yield "LargestFilesFirst"
    del application().own_strategies["LargestFilesFirst"]


@pytest.mark.slow
def test_the_example_of_the_documentation_runs(spark, new_table, registered):
    table = new_table(NUMBERS, index="x,y")
    table.append(numbers(spark, 50)).index()
    table.append(numbers(spark, 10, start=50))
    before, (indexed,) = table.checksum(), [f.path for f in table.files if f.revision]
    with pytest.raises(UseError, match="largest_bytes = 'many'"):
        table.optimize(strategy=registered, options={"largest_bytes": "many"})

    report = spark.sql(
        f"CALL use.optimize('{table.name}', '{registered}', options => map('largest_bytes', '1'))"
    ).collect()

    assert [(r.strategy, r.state, r.reason, r.input_files, r.rows) for r in report] == [
        ("LargestFilesFirst", "committed", "TOO_LARGE", 1, 50)
    ]
    assert table.removed(report[0].version) == [indexed]
    assert len(table.unindexed) == 1
    assert table.checksum() == before
    (row,) = table.optimize(strategy=registered)
    assert row.state == "skipped"
    assert "No file of version" in row.message


def test_every_class_that_a_strategy_needs_is_exported():
    for name in (
        "Strategy",
        "Relayout",
        "Concatenate",
        "FileRun",
        "InputFile",
        "SkippedGroup",
        "SelectionSettings",
        "TableFiles",
    ):
        assert getattr(sql_ext, name).__name__ == name
