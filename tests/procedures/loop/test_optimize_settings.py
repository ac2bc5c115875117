"""The arguments of ``optimize``, checked without Spark."""

import pytest

from catalog.errors import InvalidArgumentError, UnknownNameError
from procedures.declare.signature import Parameter
from procedures.loop.optimize_parameters import DEFAULT_ARGUMENTS
from procedures.loop.optimize_settings import OptimizeSettings, duration_seconds, option_value
from procedures.selection import DEFAULT_STRATEGIES
from procedures.service.schedule import Schedule

AUTO = "use.optimization.autoOptimize."
DEFAULTS = DEFAULT_ARGUMENTS


def _of(**given):
    return OptimizeSettings.of({**DEFAULTS, "table": "t", **given})


def test_defaults():
    found = _of()
    assert [s.name for s in found.strategies] == ["UnindexedFiles", "SortedRunCompaction"]
    assert found.selection["UnindexedFiles"].options == {"batch_bytes": 10_000_000_000, "from_timestamp": "0"}
    assert found.selection["SortedRunCompaction"].bytes_per_iter == 1_000_000_000
    assert (found.max_iterations, found.max_bytes, found.max_seconds, found.dry_run) == (None, None, None, False)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("LeveledCompaction", ["LeveledCompaction"]),
        (" leveledcompaction , UNINDEXEDFILES ", ["LeveledCompaction", "UnindexedFiles"]),
        (
            "UnindexedFilesSelection,leveledCompactionSelection,RevisionOptimization",
            ["UnindexedFiles", "LeveledCompaction", "RevisionRewrite"],
        ),
    ],
)
def test_strategies_are_a_list_in_any_case_and_keep_their_order(text, names):
    assert [s.name for s in _of(strategy=text).strategies] == names


@pytest.mark.parametrize(
    ("given", "revisions"),
    [
        ({"revision_id": 0}, {"UnindexedFiles": 0}),
        # The number says which revision is compacted; unindexed files always join the newest.
        ({"revision_id": 3}, {"UnindexedFiles": None, "SortedRunCompaction": 3}),
        (
            {"revision_id": 3, "strategy": "CubeDefragmentation,UnindexedFiles"},
            {"CubeDefragmentation": 3, "UnindexedFiles": None},
        ),
        ({"revision_id": 3, "strategy": "UnindexedFiles"}, {"UnindexedFiles": 3}),
        ({"revision_id": 3, "strategy": "LeveledCompaction"}, {"LeveledCompaction": 3}),
    ],
)
def test_a_revision(given, revisions):
    assert {name: told.revision_id for name, told in _of(**given).selection.items()} == revisions


@pytest.mark.parametrize("number", [None, 0, 3])
def test_a_revision_means_the_same_in_a_call_and_in_properties(number):
    """The default strategies and limits are those of the newer family."""
    properties = {f"{AUTO}enabled": "true"} | ({} if number is None else {f"{AUTO}revisionId": str(number)})
    schedule = Schedule.of_table(properties)
    assert schedule is not None
    of_call = _of(revision_id=number).selection
    assert schedule.settings().selection == of_call
    older = {"use.optimization.type": "UnindexedFiles,LeveledCompaction"}
    older |= {} if number is None else {"use.optimization.revision-id": str(number)}
    schedule = Schedule.of_table(older)
    assert schedule is not None
    assert schedule.settings().selection == _of(revision_id=number, strategy=older["use.optimization.type"]).selection


EVERY = "UnindexedFiles,LeveledCompaction,RevisionRewrite"


@pytest.mark.parametrize(
    ("given", "compaction", "batch"),
    [
        ({}, 1_000_000_000, 10_000_000_000),
        ({"bytes_per_iter": 5}, 5, 5),
        ({"bytes_per_iter": 20_000_000_000}, 20_000_000_000, 20_000_000_000),
        ({"options": {"batch_bytes": "7"}}, 1_000_000_000, 7),
        ({"bytes_per_iter": 9, "options": {"batch_bytes": "7"}}, 9, 7),
        ({"bytes_per_iter": 9, "options": {"batch_bytes": "9"}}, 9, 9),
    ],
    ids=str,
)
def test_bytes_of_an_iteration(given, compaction, batch):
    found = _of(strategy=EVERY, **given).selection
    assert {told.bytes_per_iter for told in found.values()} == {compaction}
    assert [found[name].options["batch_bytes"] for name in ("UnindexedFiles", "RevisionRewrite")] == [batch, batch]
    properties = {"use.optimization.type": EVERY}
    if "bytes_per_iter" in given:
        properties["use.optimization.bytes-per-iter"] = str(given["bytes_per_iter"])
    if "options" in given:
        properties["use.optimization.batch-bytes"] = given["options"]["batch_bytes"]
    schedule = Schedule.of_table(properties)
    assert schedule is not None
    assert schedule.settings().selection == found


def test_batches_larger_than_an_iteration_are_refused():
    with pytest.raises(InvalidArgumentError, match="batch_bytes = 7 is not accepted: at most bytes_per_iter = 6;"):
        _of(bytes_per_iter=6, options={"batch_bytes": "7"})
    contradiction = {"use.optimization.bytes-per-iter": "6", "use.optimization.batch-bytes": "7"}
    with pytest.raises(InvalidArgumentError, match="batch_bytes = 7"):
        Schedule.of_table({"use.optimization.type": "UnindexedFiles", **contradiction})
    # Where no strategy has such batches, the option is unknown.
    with pytest.raises(UnknownNameError):
        _of(strategy="LeveledCompaction", bytes_per_iter=6, options={"batch_bytes": "7"})


def test_a_revision_rewrite_comes_first_and_owns_the_revision():
    found = _of(revision_rewrite=True, revision_id=3)
    assert [s.name for s in found.strategies] == ["RevisionRewrite", *DEFAULT_STRATEGIES]
    assert {name: s.revision_id for name, s in found.selection.items()} == {
        "RevisionRewrite": 3,
        **dict.fromkeys(DEFAULT_STRATEGIES),
    }
    both = _of(revision_rewrite=True, strategy="LeveledCompaction,RevisionRewrite")
    assert [s.name for s in both.strategies] == ["RevisionRewrite", "LeveledCompaction"]


@pytest.mark.parametrize(
    ("given", "error", "code", "named"),
    [
        ({"strategy": "LeveledCompacton"}, UnknownNameError, "USE_UNKNOWN_STRATEGY", "mean LeveledCompaction?"),
        (
            {"strategy": "x"},
            UnknownNameError,
            "USE_UNKNOWN_STRATEGY",
            "Known: CubeDefragmentation, DeleteCompaction, FileList",
        ),
        ({"strategy": ""}, UnknownNameError, "USE_UNKNOWN_STRATEGY", "strategy ''"),
        ({"strategy": "LeveledCompaction,"}, UnknownNameError, "USE_UNKNOWN_STRATEGY", "strategy ''"),
        ({"strategy": "UnindexedFiles,unindexedfiles"}, InvalidArgumentError, "USE_INVALID_ARGUMENT", "once"),
        ({"bytes_per_iter": -1}, InvalidArgumentError, "USE_INVALID_ARGUMENT", "bytes_per_iter = -1"),
        ({"bytes_per_iter": 0}, InvalidArgumentError, "USE_INVALID_ARGUMENT", "bytes_per_iter = 0"),
        ({"max_bytes": 0}, InvalidArgumentError, "USE_INVALID_ARGUMENT", "max_bytes"),
        ({"parallelism": 0}, InvalidArgumentError, "USE_INVALID_ARGUMENT", "parallelism = 0 is not accepted"),
        ({"max_iterations": 0}, InvalidArgumentError, "USE_INVALID_ARGUMENT", "max_iterations"),
        ({"max_duration": "soon"}, InvalidArgumentError, "USE_INVALID_ARGUMENT", "max_duration = 'soon'"),
        ({"revision_id": -1}, InvalidArgumentError, "USE_INVALID_ARGUMENT", "revision_id"),
        ({"where": " "}, InvalidArgumentError, "USE_INVALID_ARGUMENT", "where = ' ' is not accepted"),
        ({"where": "x >"}, InvalidArgumentError, "USE_INVALID_ARGUMENT", "one predicate"),
        ({"where": "x > 1; y > 1"}, InvalidArgumentError, "USE_INVALID_ARGUMENT", "one predicate"),
        ({"where": "x > 1 LIMIT 5"}, InvalidArgumentError, "USE_INVALID_ARGUMENT", "one predicate"),
        ({"where": "x IN (SELECT y FROM u)"}, InvalidArgumentError, "USE_INVALID_ARGUMENT", "without a subquery"),
        ({"where": "exists(SELECT 1)"}, InvalidArgumentError, "USE_INVALID_ARGUMENT", "without a subquery"),
        ({"where": "sum(x) > 1"}, InvalidArgumentError, "USE_INVALID_ARGUMENT", "without an aggregate"),
        (
            {"where": "row_number() OVER (ORDER BY x) > 1"},
            InvalidArgumentError,
            "USE_INVALID_ARGUMENT",
            "without a window",
        ),
        ({"where": "DROP TABLE t"}, InvalidArgumentError, "USE_INVALID_ARGUMENT", "one predicate"),
        ({"files": []}, InvalidArgumentError, "USE_INVALID_ARGUMENT", "at least one file"),
        ({"strategy": "FileList"}, InvalidArgumentError, "USE_INVALID_ARGUMENT", "needs the parameter files"),
        (
            {"strategy": "SamplingOverheadReduction"},
            InvalidArgumentError,
            "USE_INVALID_ARGUMENT",
            "fraction is missing: a DOUBLE is required",
        ),
        (
            {"revision_rewrite": True, "revision_id": 0},
            InvalidArgumentError,
            "USE_INVALID_ARGUMENT",
            "number of an indexed revision",
        ),
        ({"options": {"batch_byte": "1"}}, UnknownNameError, "USE_UNKNOWN_OPTION", "mean batch_bytes?"),
        (
            {"strategy": "LeveledCompaction", "options": {"batch_bytes": "1"}},
            UnknownNameError,
            "USE_UNKNOWN_OPTION",
            "Known: none",
        ),
        ({"options": {"batch_bytes": "-1"}}, InvalidArgumentError, "USE_INVALID_ARGUMENT", "batch_bytes = '-1'"),
        ({"options": {"batch_bytes": "0"}}, InvalidArgumentError, "USE_INVALID_ARGUMENT", "batch_bytes"),
        ({"options": {"batch_bytes": "1.5"}}, InvalidArgumentError, "USE_INVALID_ARGUMENT", "batch_bytes"),
        ({"options": {"batch_bytes": "9" * 30}}, InvalidArgumentError, "USE_INVALID_ARGUMENT", "batch_bytes"),
        *(
            (
                {"strategy": "SamplingOverheadReduction", "options": {"fraction": text}},
                InvalidArgumentError,
                "USE_INVALID_ARGUMENT",
                f"fraction = '{text}'",
            )
            for text in ("0", "1.1", "-1", "nan", "half")
        ),
        ({"options": {"from_timestamp": "soon"}}, InvalidArgumentError, "USE_INVALID_ARGUMENT", "from_timestamp"),
    ],
)
def test_what_is_refused(given, error, code, named):
    with pytest.raises(error) as refused:
        _of(**given)
    assert refused.value.code == code
    assert named in refused.value.message


def test_options_and_limits_reach_the_strategies():
    found = _of(
        options={"batch_bytes": " 77 ", "from_timestamp": "2023-01-01 00:00:00"},
        bytes_per_iter=500,
        max_iterations=2,
        max_bytes=3,
        max_duration="1.5 minutes",
        dry_run=True,
    )
    assert found.selection["UnindexedFiles"].options == {"batch_bytes": 77, "from_timestamp": "2023-01-01 00:00:00"}
    assert found.selection["SortedRunCompaction"].bytes_per_iter == 500
    assert (found.max_iterations, found.max_bytes, found.max_seconds, found.dry_run) == (2, 3, 90.0, True)


def test_the_event_gets_the_arguments_as_text_without_the_table():
    found = _of(max_iterations=2, options={"batch_bytes": "7"})
    assert "table" not in found.parameters
    assert found.parameters["max_iterations"] == "2"
    assert "batch_bytes" in found.parameters["options"]
    assert all(isinstance(v, str) for v in found.parameters.values())


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10 minutes", 600),
        ("1 minute", 60),
        ("90s", 90),
        ("90 seconds", 90),
        ("0.5h", 1800),
        ("2 Days", 172_800),
        ("5min", 300),
        ("5 mins", 300),
        (None, None),
    ],
)
def test_durations(text, seconds):
    assert duration_seconds("max_duration", text) == seconds


@pytest.mark.parametrize(
    "text", ["", "10", "minutes", "-1 minute", "0 seconds", "1 fortnight", "1 minute 2 seconds", "nan s"]
)
def test_durations_refused(text):
    with pytest.raises(InvalidArgumentError, match="max_duration"):
        duration_seconds("max_duration", text)


def test_an_option_left_out_has_its_default():
    assert option_value(Parameter("n", "BIGINT", "A number.", 5), None) == 5


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [("DOUBLE", " 0.5 ", 0.5), ("BOOLEAN", "TRUE", True), ("INT", "3", 3), ("STRING", "x", "x")],
)
def test_an_option_is_read_by_its_type(kind, text, value):
    assert option_value(Parameter("o", kind, "An option.", None), text) == value


@pytest.mark.parametrize(("kind", "text"), [("DOUBLE", "inf"), ("DOUBLE", ""), ("BOOLEAN", "yes"), ("INT", "1.5")])
def test_an_option_of_another_type_is_refused(kind, text):
    with pytest.raises(InvalidArgumentError, match=f"o = '{text}'"):
        option_value(Parameter("o", kind, "An option.", None), text)


def test_files_without_a_strategy_are_rewritten_as_they_are():
    assert [s.name for s in _of(files=["f"]).strategies] == ["FileList"]
    assert [s.name for s in _of(files=["f"], strategy="UnindexedFiles").strategies] == ["UnindexedFiles"]
    assert [s.name for s in _of(where="x > 1").strategies] == list(DEFAULT_STRATEGIES)
