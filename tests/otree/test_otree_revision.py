"""Revisions and the table properties that hold them."""

import json

import pytest

from otree.errors import IndexFormatError
from otree.revision import (
    LAST_REVISION_KEY,
    Revision,
    configuration_of,
    last_revision_id,
    next_revision,
    staging_of,
    stored_revisions,
)
from otree.transformation import ColumnStats, HashTransformation, IdentityTransformation, LinearTransformation
from otree.transformer import Transformer

TIME = Transformer("linear", "t", "TimestampDataType")
NAME = Transformer("hashing", "n", "StringDataType")
NULLS = ColumnStats(None, None)
# Long after the times of the tests, so that they need no room for later ones.
NOW = 1_700_000_000_000
GOLDEN = (
    '{"revisionID":1,"timestamp":1795248698271,"tableID":"/data/t1","desiredCubeSize":10000,"columnTransformers":['
    '{"className":"io.qbeast.core.transform.LinearTransformer","columnName":"t","dataType":"TimestampDataType"},'
    '{"className":"io.qbeast.core.transform.HashTransformer","columnName":"n","dataType":"StringDataType"}],'
    '"transformations":[{"className":"io.qbeast.core.transform.LinearTransformation","minNumber":0,"maxNumber":10,'
    '"nullValue":0,"orderedDataType":"TimestampDataType"},'
    '{"className":"io.qbeast.core.transform.HashTransformation","nullValue":1}]}'
)


def _first() -> Revision:
    return next_revision(None, (TIME, NAME), (ColumnStats(0, 1000), NULLS), 100, NOW, "/t")


def test_golden_json() -> None:
    """A revision is written back identically; unknown fields are ignored."""
    revision = Revision.from_json(GOLDEN)
    assert revision.to_json() == GOLDEN
    assert revision.columns == ("t", "n")
    assert revision.dimensions == 2
    assert not revision.is_staging
    assert revision.coordinates((5, "a")) == (0.5, HashTransformation(1).coordinate("a"))
    assert Revision.from_json(json.dumps({**json.loads(GOLDEN), "later": [1]})) == revision
    with pytest.raises(ValueError, match="zip"):
        revision.coordinates((5,))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"revisionID": "1"}, "revisionID"),
        ({"tableID": None}, "tableID"),
        ({"desiredCubeSize": 1.5}, "desiredCubeSize"),
        ({"transformations": [{"className": "io.qbeast.core.transform.EmptyTransformation"}]}, "transformations"),
        ({"columnTransformers": [{"className": "x.CDFNumericQuantilesTransformer"}]}, "CDFNumericQuantilesTransformer"),
        ({"columnTransformers": 1}, "columnTransformers"),
    ],
)
def test_wrong_json_is_refused(change: dict[str, object], named: str) -> None:
    """The message names the field or class."""
    with pytest.raises(IndexFormatError, match=named):
        Revision.from_json(json.dumps({**json.loads(GOLDEN), **change}))


def test_configuration_round_trip() -> None:
    """Staging and first revision go to properties and come back."""
    first = _first()
    staging = staging_of(first)
    assert staging.is_staging
    assert staging.timestamp == first.timestamp - 1
    assert staging.columns == first.columns
    assert "EmptyTransformer" in staging.to_json()
    conf = configuration_of([staging, first])
    assert conf[LAST_REVISION_KEY] == "1"
    assert last_revision_id(conf) == 1
    stored = stored_revisions({**conf, "other": "x"})
    assert (stored.readable, stored.unreadable) == ({0: staging, 1: first}, {})
    assert configuration_of([]) == {}
    assert last_revision_id({}) is None
    with pytest.raises(IndexFormatError, match=LAST_REVISION_KEY):
        last_revision_id({LAST_REVISION_KEY: "x"})
    misfiled = stored_revisions({"qbeast.revision.7": first.to_json()})
    assert misfiled.readable == {}
    assert "revisionID" in misfiled.unreadable["qbeast.revision.7"]


def test_staging_with_real_transformers() -> None:
    """A created table has transformers but no transformations; its first data makes revision 1."""
    text = json.dumps({**json.loads(GOLDEN), "revisionID": 0, "transformations": []})
    staging = Revision.from_json(text)
    assert staging.is_staging
    assert (staging.dimensions, staging.transformations) == (2, ())
    first = next_revision(staging, staging.transformers, (ColumnStats(3, 3), NULLS), 10000, 1, "/t")
    assert first.revision_id == 1
    assert first.transformations[0] == IdentityTransformation(3, "TimestampDataType")


def test_next_revision_is_the_latest_when_it_suits() -> None:
    """Only data out of range, other columns or another cube size make a revision."""
    first = _first()
    assert first.revision_id == 1
    suits = (ColumnStats(10, 900), NULLS)
    assert next_revision(first, (TIME, NAME), suits, 100, NOW, "/t") is first
    resized = next_revision(first, (TIME, NAME), suits, 200, NOW, "/t")
    assert (resized.revision_id, resized.transformations) == (2, first.transformations)
    turned = next_revision(first, (NAME, TIME), (NULLS, ColumnStats(10, 2000)), 100, NOW, "/t")
    assert turned.transformations == (
        first.transformations[1],
        LinearTransformation(0, 8000, 0, "TimestampDataType"),
    )
    with pytest.raises(ValueError, match="statistics"):
        next_revision(first, (TIME,), (), 100, NOW, "/t")


def test_growing_timestamps_make_few_revisions() -> None:
    """A thousand steady appends make O(log n) revisions."""
    revision: Revision | None = None
    start = 1_700_000_000_000
    for hour in range(1000):
        stats = (ColumnStats(start + hour * 3_600_000, start + (hour + 1) * 3_600_000),)
        revision = next_revision(revision, (TIME,), stats, 100, hour, "/t")
    assert revision is not None
    assert 5 <= revision.revision_id <= 6
