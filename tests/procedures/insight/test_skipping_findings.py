"""Why conditions and files do not help a query to skip files. No Spark."""

import json
from dataclasses import replace

import pytest
from pyspark.sql.types import StructType

from catalog.jvm.read_report import PlannedSample
from catalog.jvm.skipping_report import PlannedCondition, RevisionFiles, SkippingPlan, SkippingScan
from catalog.predicates.index_conditions import condition_of_json
from otree.revision import Revision, configuration_of
from otree.transformation.hashing import HashTransformation
from otree.transformation.linear import LinearTransformation
from otree.transformer import Transformer
from procedures.insight.skipping.equivalents import equivalent
from procedures.insight.skipping.explanation import explanation_rows, explanation_text

SCHEMA = StructType().add("a", "long").add("b", "long").add("s", "string").add("f", "boolean").add("p", "integer")


def revision(number, columns):
    transformers, transformations = [], []
    for column in columns:
        if column == "s":
            transformers.append(Transformer("hashing", "s", "StringDataType"))
            transformations.append(HashTransformation.for_column("s"))
        else:
            transformers.append(Transformer("linear", column, "LongDataType"))
            transformations.append(LinearTransformation(0, 1000, 0, "LongDataType"))
    return Revision(number, 0, "t", 100, tuple(transformers), tuple(transformations))


NEWEST = revision(2, "as")
OLD = revision(1, "b")


def leaf(column, comparison="<", value=5, *, type_="BIGINT", **more):
    """A comparison of a column with a constant, as the shim describes it."""
    tree = {"operator": comparison.lower(), "column": column, "type": type_.lower(), "values": [value]}
    text = f"{column} {comparison} {value}"
    return PlannedCondition(
        **{
            "text": text, "tree": condition_of_json(json.dumps(tree)),
            "subject": "column", "comparison": comparison, "columns": (column,),
            "constants": (str(value),), "column": column, "type": type_, **more,
        }
    )  # fmt: skip


def either(*parts):
    return PlannedCondition(" OR ".join(part.text for part in parts), "or", parts)


def function(name, *arguments, comparison="=", constant="5", type_="BIGINT"):
    return PlannedCondition(
        f"{name}({', '.join(arguments)}) {comparison} {constant}", subject="function", comparison=comparison,
        constants=(constant,), columns=("a",), type=type_, function=name, arguments=arguments,
    )  # fmt: skip


def scan(*conditions, configuration=None, read=(("2", 3),), missing=None, limited=False):
    files = sum(number for _, number in read)
    counts = {"table": "db.t", "version": 7, "is_limited": limited, "total_files": 20, "total_bytes": 200, "joins": ()}
    for step, number in (("partition", 18), ("candidate", 15), ("cube", files + 1), ("kept", files)):
        counts |= {f"{step}_files": number, f"{step}_bytes": 10 * number}
    properties = configuration_of([OLD, NEWEST]) if configuration is None else configuration
    return SkippingScan(
        counts, json.dumps(properties), SCHEMA, tuple(RevisionFiles(r, n, 10 * n) for r, n in read), conditions,
        lambda: missing or {},
    )  # fmt: skip


def reasons(*conditions, pruning_enabled=True, **more):
    rows = explanation_rows(SkippingPlan((scan(*conditions, **more),), ()), pruning_enabled=pruning_enabled)
    return [(row.item, row.condition) for row in rows[6:]]


def test_the_steps_add_up_to_the_files_of_the_table():
    rows = explanation_rows(SkippingPlan((scan(leaf("a")),), ()), pruning_enabled=True)
    assert [(row.item, row.files, row.bytes) for row in rows] == [
        ("TABLE", 20, 200), ("PARTITION_VALUES", 2, 20), ("STATISTICS", 3, 30), ("CUBES", 11, 110), ("WEIGHTS", 1, 10),
        ("READ", 3, 30),
    ]  # fmt: skip
    limited = explanation_rows(SkippingPlan((scan(limited=True),), ()), pruning_enabled=True)
    assert [row.item for row in limited] == ["TABLE", "PARTITION_VALUES", "LIMIT", "CUBES", "WEIGHTS", "READ"]


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        (leaf("a"), None),
        (leaf("s", "=", "x", type_="STRING"), None),
        (leaf("b"), "OTHER_COLUMN"),
        (leaf("a", "<", 5000), "UNSELECTIVE_CONDITION"),
        (leaf("s", "<", "x", type_="STRING"), "RANGE_ON_HASHED_COLUMN"),
        (leaf("a", "=", 5, subject="cast", tree=None, cast_type="STRING"), "CAST"),
        (leaf("b", "=", 5, subject="cast", tree=None, cast_type="STRING"), "OTHER_COLUMN"),
        (function("year", "a"), "FUNCTION_OVER_COLUMN"),
        (PlannedCondition("a < b", columns=("a", "b")), "NOT_A_CONSTANT"),
        (either(leaf("a"), leaf("s", "=", "x", type_="STRING")), None),
        (leaf("p", is_partition=True), None),
        (PlannedCondition("hash(a, s) < 5", subject="hash"), None),
    ],
)
def test_a_condition_that_does_not_help_has_a_reason(condition, reason):
    assert reasons(condition) == ([] if reason is None else [(reason, condition.text)])


def test_alternatives_are_judged_together():
    mixed = either(leaf("a"), leaf("b"))
    assert reasons(mixed) == [("OR_WITH_UNINDEXED_COLUMN", mixed.text)]
    with_function = function("year", "a")
    assert reasons(either(leaf("a"), with_function)) == [("FUNCTION_OVER_COLUMN", with_function.text)]
    both = PlannedCondition("b < 5 AND a < 5", "and", (leaf("b"), leaf("a")))
    assert reasons(either(leaf("a"), both)) == [], "an alternative is limited by one of its conditions"


def test_a_scan_without_conditions_says_so():
    assert reasons() == [("NO_FILTER", None)]
    assert reasons(limited=True) == []
    inferred = leaf("a", "IS NOT NULL", tree=None)
    assert reasons(inferred, leaf("a")) == [], "Spark infers it from the other condition"
    assert reasons(inferred) == [("UNSELECTIVE_CONDITION", inferred.text)]


def test_files_that_a_condition_cannot_skip():
    assert reasons(leaf("a"), read=(("2", 3), ("", 4))) == [("UNINDEXED_FILES", None)]
    assert reasons(leaf("a"), read=(("2", 3), ("9", 4))) == [("UNINDEXED_FILES", None)], "its revision is unreadable"
    assert reasons(leaf("a"), read=(("2", 3), ("1", 4))) == [("OLD_REVISION", "a < 5")]
    assert reasons(leaf("a"), read=(("2", 3), ("1", 0))) == []
    assert reasons(leaf("b"), read=(("1", 3), ("", 4))) == [("OTHER_COLUMN", "b < 5")], "an index would not help"
    assert reasons(leaf("a"), pruning_enabled=False) == [("SWITCHED_OFF", None)]


def test_one_side_of_a_range_is_enough():
    assert reasons(leaf("a"), leaf("a", ">", -1)) == []
    assert reasons(leaf("a", ">", -1)) == [("UNSELECTIVE_CONDITION", "a > -1")]


def test_tables_without_index():
    assert reasons(leaf("a"), configuration={}) == [("OTHER_COLUMN", "a < 5"), ("NOT_INDEXED", None)]
    assert reasons(leaf("a", used_by="statistics"), configuration={}) == [("NOT_INDEXED", None)]
    declared = {"use.index.columns": "a"}
    assert reasons(leaf("a", used_by="statistics"), configuration=declared) == [("UNINDEXED_FILES", None)]


def test_missing_statistics():
    assert reasons(leaf("a"), missing={"a": 5}) == [("MISSING_STATISTICS", "a")]
    assert reasons(leaf("a"), missing={"a": 0, "f": 20}) == [], "Delta has no minimum of booleans"
    (some, all_of_them) = (
        explanation_rows(SkippingPlan((scan(leaf("a"), missing={"a": n}),), ()), pruning_enabled=True)[6].message
        for n in (5, 20)
    )
    assert "The step STATISTICS" in some
    assert "delta.dataSkippingStatsColumns" in all_of_them


def test_a_query_without_delta_scan_and_a_sample_of_spark():
    sample = PlannedSample("WITH_REPLACEMENT", "a row may be drawn more than once", 0.0, 0.5)
    rows = explanation_rows(SkippingPlan((), (sample,)), pruning_enabled=True)
    assert [(row.scan, row.item) for row in rows] == [(None, "NO_DELTA_SCAN"), (None, "SAMPLE_LEFT_TO_SPARK")]
    assert "WITH_REPLACEMENT" in rows[1].message
    text = explanation_text(rows)
    assert len(text.splitlines()) == len(rows)


@pytest.mark.parametrize(
    ("condition", "better"),
    [
        (function("year", "a", constant="2020", type_="DATE"), "a >= DATE '2020-01-01' AND a < DATE '2021-01-01'"),
        (function("year", "a", comparison=">", constant="2020", type_="DATE"), "a >= DATE '2021-01-01'"),
        (function("year", "a", comparison="<=", constant="2020", type_="DATE"), "a < DATE '2021-01-01'"),
        (function("year", "a", comparison="NOT =", constant="2020", type_="DATE"), None),
        (function("year", "upper(a)", constant="2020", type_="DATE"), None),
        (function("substring", "a", "1", "2", constant="'xy'"), "a LIKE 'xy%'"),
        (function("substring", "a", "1", "2", constant="'xyz'"), None),
        (function("substring", "a", "2", "2", constant="'xy'"), None),
        (function("substring", "a", "1", "2", constant="'x%'"), None),
        (function("add", "a", "3L", comparison="<", constant="9L"), "a < 9L - 3L"),
        (function("subtract", "a", "3L", comparison=">=", constant="9L"), "a >= 9L + 3L"),
        (function("add", "a", "3.5D", comparison="<", constant="9.0D", type_="DOUBLE"), None),
        (function("upper", "a", constant="'X'"), None),
    ],
)
def test_equivalent_conditions(condition, better):
    assert equivalent(condition) == better


@pytest.mark.parametrize(("name", "unit"), [("a", "'MONTH'"), ("day", "'month'"), ("YEAR", "'mm'")])
def test_the_unit_of_a_truncation_is_not_the_name_of_its_column(name, unit):
    start = "DATE '2024-01-01'"
    condition = replace(function("trunc", name, unit, constant=start, type_="DATE"), columns=(name,))
    expected = f"{name} >= {start} AND {name} < {start} + INTERVAL 1 MONTH, if {start} is the start of a period"
    assert equivalent(condition) == expected
    assert equivalent(replace(condition, arguments=(name, "unit"), columns=(name, "unit"))) is None


def test_joins_are_a_step_and_a_row_each():
    """The first join skips files, the second says why it does not."""
    job = {"job_files": 2, "job_bytes": 1234}
    joined = {"side": "db.d", "columns": ["a"], "keys": 1, "reason": None, "files": 1, "bytes": 10, **job}
    job = {"job_files": None, "job_bytes": None}
    kept = {"side": "db.e", "columns": ["b"], "keys": None, "reason": "SHUFFLED", "files": 1, "bytes": 10, **job}
    given = scan()
    counts = given.counts | {"joins": (joined, kept), "joined_files": 1, "joined_bytes": 10}
    rows = explanation_rows(SkippingPlan((replace(given, counts=counts),), ()), pruning_enabled=True)
    found = [(row.item, row.condition, row.files, row.bytes) for row in rows[5:]]
    assert found[:2] == [("JOINS", None, 2, 20), ("READ", None, 1, 10)]
    assert found[2:4] == [("JOIN", "join with db.d on a", 1, 10), ("SHUFFLED", "join with db.e on b", 1, 10)]
    assert "NO_FILTER" not in {row.item for row in rows}
    message = "1 of 20 files are left after this join, whose other side has 1 key."
    assert rows[7].message == f"{message} A job reads the keys from 2 files (1.2 kB)."
    assert "Broadcast" in rows[8].message
