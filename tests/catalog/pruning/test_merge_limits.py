"""The limits of a session for the keys of a MERGE."""

import json

from catalog.pruning.merge_limits import MergeLimits


def limits(**settings):
    return MergeLimits.of(lambda name, default: settings.get(name.removeprefix("spark.qbeast.use."), default))


def test_defaults():
    assert json.loads(limits().json) == {"enabled": True, "keys": 50_000, "bytes": 16 << 20, "ranges": 50}


def test_settings():
    changed = limits(**{"joins.enabled": "false", "joins.keys": "7", "merges.bytes": "1kb"})
    assert (changed.enabled, changed.keys, changed.bytes) == (False, 7, 1024)


def test_a_limit_that_is_not_accepted_counts_as_the_default():
    """The limit is a number of rows of Spark, plus one."""
    assert limits(**{"joins.keys": "3000000000"}).keys == 50_000
