"""Properties that are made from options of strategies: pure."""

import pytest

from catalog.errors import InvalidArgumentError
from catalog.properties.option_properties import options_given, properties_of, property_key
from catalog.settings.setting import RATIO, SIZE, Setting

LIMIT = Setting("most_bytes", SIZE, "Bytes, at most.", "1MB")
SHARE = Setting("min_share", RATIO, "Share, at least.")
PROPERTIES = properties_of("use.x.", LIMIT, SHARE, aliases={"min_share": "share"})


@pytest.mark.parametrize(
    ("prefix", "option", "key"),
    [
        ("use.clustering.", "tier_ratio", "use.clustering.tierRatio"),
        ("use.clustering.", "clustering_bytes", "use.clustering.bytes"),
        ("a.stepConsolidation.", "step_min_files", "a.stepConsolidation.minFiles"),
        ("a.stepConsolidation.", "steps", "a.stepConsolidation.steps"),
        ("a.stepConsolidation.", "max_file_bytes", "a.stepConsolidation.maxFileBytes"),
        ("", "batch_bytes", "batchBytes"),
    ],
)
def test_the_key_is_the_name_in_camel_case(prefix, option, key):
    assert property_key(prefix, option) == key


def test_a_property_differs_from_its_option_in_the_name_alone():
    limit = PROPERTIES["most_bytes"]
    assert limit.name == "use.x.mostBytes"
    assert limit.named(LIMIT.name) == LIMIT
    assert (PROPERTIES["min_share"].name, PROPERTIES["min_share"].aliases) == ("use.x.minShare", ("use.x.share",))


def test_options_are_given_as_they_are_written():
    assert options_given(PROPERTIES, {}) == {}
    assert options_given(PROPERTIES, {"use.x.mostBytes": "3 KB", "use.y": "1"}) == {"most_bytes": "3 KB"}
    assert options_given(PROPERTIES, {"use.x.share": "0.5"}) == {"min_share": "0.5"}
    assert options_given(PROPERTIES, {"use.x.share": "0.5", "use.x.minShare": "1"}) == {"min_share": "1"}
    for key, value in (("use.x.mostBytes", "0"), ("use.x.share", "2"), ("use.x.minShare", "nan")):
        with pytest.raises(InvalidArgumentError, match=f"{key} = '{value}'"):
            options_given(PROPERTIES, {key: value})
