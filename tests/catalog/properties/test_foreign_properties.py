"""Properties of other systems: which statements are told what to set instead."""

import re

import pytest

from catalog.errors import UnknownNameError
from catalog.properties.foreign_properties import FOREIGN_PROPERTIES, foreign_property, foreign_warning
from catalog.properties.names import PROPERTIES, unknown_property

AUTO_COMPACT = "delta.autoOptimize.autoCompact"


@pytest.mark.parametrize(
    ("key", "ours"),
    [
        ("acid.data.retain.hours", "use.retention.hours"),
        ("ACID.Data.Retain.Hours", "use.retention.hours"),
        ("acid.other", "use.retention.hours"),
        ("cdc.data.retain.hours", "use.retention.hours"),
        ("transactional", "use.compaction.primaryKey"),
        ("write.bucket.num", "use.index.columns"),
        ("lifecycle", "use.retention.hours"),
        ("columnsToIndex", "use.index.columns"),
        ("cubeSize", "use.index.cubeSize"),
        ("columnStats", "use.index.columnStats"),
        ("sm.consolidation.steps", "use.optimization.autoOptimize.stepConsolidation.steps"),
        ("sm.consolidation.step_min_frags", "use.optimization.autoOptimize.stepConsolidation.minFiles"),
        ("sm.consolidation.timestamp_end", "timestamp_end"),
        ("sm.consolidation.buffer_size", "use.optimization.autoOptimize.stepConsolidation.enabled"),
        ("sm.vacuum.mode", "use.vacuum.interval"),
    ],
)
def test_a_foreign_property_names_ours(key, ours):
    warning = foreign_warning({}, {key: "1", "owner": "me"})
    assert warning.startswith(f"'{key}' has no effect on a Delta table. ")
    assert f"'{ours}'" in warning


def test_every_property_that_is_advised_exists():
    advised = {key for foreign in FOREIGN_PROPERTIES for key in re.findall("'(use[^']+)'", foreign.advice)}
    assert advised <= set(PROPERTIES)
    assert not [foreign.name for foreign in FOREIGN_PROPERTIES if foreign.name != foreign.name.lower()]


@pytest.mark.parametrize(
    "key", ["retention", "transactional2", "sm", "delta.appendOnly", "use.index.columns", "qbeast.revision.1"]
)
def test_other_properties_are_not_foreign(key):
    assert foreign_property(key) is None
    assert foreign_warning({}, {key: "1"}) is None


def test_only_what_a_statement_sets_is_warned_about():
    table = {"lifecycle": "30", "columnsToIndex": "a"}
    assert foreign_warning(table, table | {"use.index.columns": "a"}) is None
    assert foreign_warning(table, {"columnsToIndex": "a"}) is None
    changed = foreign_warning(table, table | {"lifecycle": "60"})
    assert "lifecycle" in changed
    assert "columnsToIndex" not in changed


def test_auto_compaction_of_delta_is_warned_about_where_it_competes():
    on, off, ours = {AUTO_COMPACT: "true"}, {AUTO_COMPACT: "false"}, {"use.index.columns": "a"}
    assert foreign_warning({}, on) is None
    assert foreign_warning(ours, ours | off) is None
    for before, after in (({}, ours | on), (ours, ours | on), (on, ours | on), (ours | off, ours | on)):
        assert f"'{AUTO_COMPACT}' works against USE" in foreign_warning(before, after)
    assert foreign_warning(ours | on, ours | on | {"owner": "me"}) is None


def test_below_our_prefix_the_refusal_names_ours():
    refused = unknown_property("use.acid.data.retain.hours")
    assert isinstance(refused, UnknownNameError)
    assert refused.code == "USE_UNKNOWN_PROPERTY"
    assert refused.message.endswith("Set 'use.retention.hours' instead.")
    assert unknown_property("use.retention.hours") is None
