"""The end of automatic optimization of a table, without Spark."""

from types import SimpleNamespace

import pytest

from catalog.properties.inherited import InheritedProperties
from procedures.service.release import automatic_properties, remaining_strategies, switches_off


def _snapshot(**inherited):
    return SimpleNamespace(inherited=InheritedProperties(**inherited), schema=SimpleNamespace(names=["x"]))


def test_the_properties_of_rewrites_are_those_of_three_families_and_the_fleet():
    own = dict.fromkeys(
        (
            "use.optimization.type",
            "use.clustering.enabled",
            "use.compaction.interval",
            "use.fleet.enabled",
            "use.fleet.hours",
            "use.retention.hours",
            "use.index.columns",
            "owner",
        ),
        "x",
    )
    assert automatic_properties(own) == (
        "use.clustering.enabled",
        "use.compaction.interval",
        "use.fleet.enabled",
        "use.optimization.type",
    )


@pytest.mark.parametrize(
    ("inherited", "switches"),
    [
        ({}, {}),
        ({"database": {"use.fleet.enabled": "true"}}, {"use.fleet.enabled": "false"}),
        ({"session": {"use.optimization.autoOptimize.enabled": "true"}}, {"use.fleet.enabled": "false"}),
        ({"database": {"use.clustering.enabled": "true"}}, {"use.fleet.enabled": "false"}),
        ({"database": {"use.compaction.interval": "1 day"}}, {"use.fleet.enabled": "false"}),
        ({"database": {"use.fleet.enabled": "false"}}, {}),
    ],
)
def test_what_a_table_inherits_is_switched_off(inherited, switches):
    snapshot = _snapshot(**inherited)
    assert switches_off(snapshot, {}) == switches
    assert remaining_strategies(snapshot, switches) is None
