"""Both families of properties of automatic optimization: pure."""

import pytest

from catalog.errors import InvalidArgumentError, UnknownNameError, UseError
from catalog.properties.optimization_properties import OptimizationProperties, Triggers, effective_type

OPTIONS = ("batch_bytes", "from_timestamp", "fraction")
AUTO = "use.optimization.autoOptimize."


def of(given):
    return OptimizationProperties.of(given, OPTIONS)


def test_nothing_asked():
    assert of({}) is None
    assert of({"use.index.columns": "x", "delta.appendOnly": "true"}) is None
    # What remains after UNSET of the one key that switches a family on.
    assert of({"use.optimization.bytes-per-iter": "5"}) is None
    assert of({f"{AUTO}revisionId": "1", f"{AUTO}optimizeUnindexedFiles.enabled": "false"}) is None


def test_the_older_family():
    found = of({"use.optimization.type": "CubeDefragmentation"})
    assert (found.strategies, found.bytes_per_iter) == (("CubeDefragmentation",), None)
    assert (found.revision_id, found.revision_rewrite, found.options) == (None, False, {})
    found = of(
        {
            "use.optimization.type": " UnindexedFiles , LeveledCompaction",
            "use.optimization.bytes-per-iter": "5000000",
            "use.optimization.revision-rewrite": "TRUE",
            "use.optimization.revision-id": "2",
            "use.optimization.batch-bytes": "7",
            "use.optimization.fraction": "0.1",
        }
    )
    assert found.strategies == ("UnindexedFiles", "LeveledCompaction")
    assert (found.bytes_per_iter, found.revision_rewrite, found.revision_id) == (5_000_000, True, 2)
    assert found.options == {"batch_bytes": "7", "fraction": "0.1"}
    assert found.asked["use.optimization.fraction"] == "0.1"


BATCH = {"batch_bytes": "10000000000"}


@pytest.mark.parametrize(
    ("more", "strategies", "options"),
    [
        ({}, ("UnindexedFiles", "SortedRunCompaction"), BATCH),
        (
            {"optimizeUnindexedFiles.prioritize": "false"},
            ("SortedRunCompaction", "UnindexedFiles"),
            BATCH,
        ),
        ({"optimizeUnindexedFiles.enabled": "false"}, ("SortedRunCompaction",), {}),
        ({"mergeSortedRuns.enabled": "false"}, ("UnindexedFiles", "LeveledCompaction"), BATCH),
        ({"revisionId": "0"}, ("UnindexedFiles",), BATCH),
        (
            {"optimizeUnindexedFiles.batchBytes": "9", "optimizeUnindexedFiles.fromTimestamp": "2023-01-01 00:00:00"},
            ("UnindexedFiles", "SortedRunCompaction"),
            {"batch_bytes": "9", "from_timestamp": "2023-01-01 00:00:00"},
        ),
    ],
)
def test_the_newer_family(more, strategies, options):
    given = {f"{AUTO}enabled": "true", **{AUTO + key: value for key, value in more.items()}}
    found = of(given)
    assert (found.strategies, found.options) == (strategies, options)
    assert effective_type(given) == ",".join(strategies)


def test_the_newer_family_consolidates_in_steps():
    """After the other strategies; alone in a table without index columns."""
    given = {
        f"{AUTO}enabled": "true",
        f"{AUTO}stepConsolidation.minFiles": "3",
        f"{AUTO}stepConsolidation.sizeRatio": "0.5",
        f"{AUTO}stepConsolidation.maxFileBytes": "1000",
    }
    assert of(given).strategies == ("UnindexedFiles", "SortedRunCompaction")
    given[f"{AUTO}stepConsolidation.enabled"] = "true"
    steps = {"step_min_files": "3", "step_size_ratio": "0.5", "max_file_bytes": "1000"}
    assert (of(given).strategies, of(given).options) == (("StepConsolidation",), steps)
    assert effective_type(given) == "StepConsolidation"
    for indexed in ({"use.index.columns": "a"}, {"qbeast.lastRevisionID": "1"}):
        found = OptimizationProperties.of({**given, **indexed}, OPTIONS)
        assert found.strategies == ("UnindexedFiles", "SortedRunCompaction", "StepConsolidation")
        assert found.options == {**BATCH, **steps}
    for key, value in (("enabled", "perhaps"), ("minFiles", "1"), ("sizeRatio", "half"), ("steps", "0")):
        with pytest.raises(InvalidArgumentError, match=f"stepConsolidation.{key}"):
            of({**given, f"{AUTO}stepConsolidation.{key}": value})


def test_options_of_steps_count_where_steps_are_enabled():
    given = {f"{AUTO}enabled": "true", f"{AUTO}stepConsolidation.sizeRatio": "5"}
    assert of(given).options == BATCH
    with pytest.raises(InvalidArgumentError, match="sizeRatio = '5' is not accepted: a number from 0 to 1"):
        of({**given, f"{AUTO}stepConsolidation.enabled": "true"})


def test_the_newer_family_wins_and_says_so():
    older = {"use.optimization.type": "LeveledCompaction", "use.optimization.bytes-per-iter": "5"}
    found = of({**older, f"{AUTO}enabled": "true"})
    assert found.strategies == ("UnindexedFiles", "SortedRunCompaction")
    assert found.bytes_per_iter is None
    assert "use.optimization.bytes-per-iter, use.optimization.type do not count" in found.note
    assert of({**older, f"{AUTO}enabled": "false"}) is None
    assert effective_type({**older, f"{AUTO}enabled": "false"}) is None
    # Without the one key, the older family counts again.
    assert of({**older, f"{AUTO}revisionId": "1"}).strategies == ("LeveledCompaction",)
    assert effective_type(older) == "LeveledCompaction"


def test_triggers():
    found = of(
        {
            "use.optimization.type": "UnindexedFiles",
            "use.optimization.trigger.commits": "10",
            "use.optimization.trigger.unindexed-bytes": "1000",
            "use.optimization.trigger.unindexed-share": "0.25",
            "use.optimization.trigger.small-files": "4",
        }
    )
    assert found.triggers == Triggers(10, 1000, 0.25, 4)
    assert found.options == {}
    assert (found.triggers.any, found.triggers.of_files) == (True, True)
    assert (Triggers(commits=1).any, Triggers(commits=1).of_files, Triggers().any) == (True, False, False)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("use.optimization.type", ""),
        ("use.optimization.type", "a,,b"),
        ("use.optimization.bytes-per-iter", "0"),
        ("use.optimization.bytes-per-iter", "5MB"),
        ("use.optimization.revision-id", "-1"),
        ("use.optimization.revision-rewrite", "yes"),
        ("use.optimization.trigger.commits", "0"),
        ("use.optimization.trigger.unindexed-share", "1.5"),
        ("use.optimization.trigger.unindexed-share", "nan"),
        (f"{AUTO}enabled", "on"),
    ],
)
def test_wrong_values_are_named(key, value):
    with pytest.raises(InvalidArgumentError) as refused:
        of({"use.optimization.type": "UnindexedFiles", key: value})
    assert key in str(refused.value)
    assert f"'{value}'" in str(refused.value)


def test_a_contradiction_is_refused():
    with pytest.raises(InvalidArgumentError, match="nothing would be optimized"):
        of({f"{AUTO}enabled": "true", f"{AUTO}revisionId": "0", f"{AUTO}optimizeUnindexedFiles.enabled": "false"})


def test_unknown_keys_give_the_nearest():
    with pytest.raises(UnknownNameError, match=r"Did you mean use.optimization.type\?") as refused:
        of({"use.optimization.tpye": "UnindexedFiles"})
    assert refused.value.code == "USE_UNKNOWN_PROPERTY"


def test_a_manual_trigger_takes_the_older_family_only():
    found = OptimizationProperties.of_trigger({"use.optimization.type": "LeveledCompaction"}, OPTIONS)
    assert found.strategies == ("LeveledCompaction",)
    for given in (
        {"use.optimization.bytes-per-iter": "5"},
        {"use.optimization.type": "x", f"{AUTO}enabled": "true"},
        {"use.optimization.type": "x", "use.optimization.trigger.commits": "1"},
        {"use.optimization.type": "x", "use.index.columns": "a"},
    ):
        with pytest.raises(UseError):
            OptimizationProperties.of_trigger(given, OPTIONS)


@pytest.mark.parametrize("text", ["0.9", "0", "-1", "many", "nan", "inf"])
@pytest.mark.parametrize("family", [{f"{AUTO}enabled": "true"}, {"use.optimization.type": "LeveledCompaction"}])
def test_a_budget_of_rewrites_is_at_least_one_in_both_families(text, family):
    key = "use.optimization.maxWriteAmplification"
    with pytest.raises(InvalidArgumentError, match="a number of at least 1"):
        of({**family, key: text})
    found = of({**family, key: "2.5"})
    assert found.asked[key] == "2.5"
    assert key.removeprefix("use.optimization.") not in found.options
