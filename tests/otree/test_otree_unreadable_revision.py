"""Whatever the properties of the revisions hold, they are read as far as they can be, and nothing else is raised."""

import copy
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otree.cardinality import WeightCardinality
from otree.errors import IndexFormatError
from otree.revision import Revision, newest_revision, stored_revisions

PREFIX = "io.qbeast.core.transform."
LINEAR = {"minNumber": 0, "maxNumber": 999, "nullValue": 147}
SOUND: dict[str, Any] = {
    "revisionID": 1,
    "timestamp": 5,
    "tableID": "/t",
    "desiredCubeSize": 100,
    "columnTransformers": [
        {"className": PREFIX + "LinearTransformer", "columnName": "a", "dataType": "LongDataType"},
        {"className": PREFIX + "HashTransformer", "columnName": "s", "dataType": "StringDataType"},
        {
            "className": PREFIX + "CDFNumericQuantilesTransformer",
            "columnName": "q",
            "orderedDataType": "DoubleDataType",
        },
        {"className": PREFIX + "CDFStringQuantilesTransformer", "columnName": "z"},
        {"className": PREFIX + "LinearTransformer", "columnName": "k", "dataType": "IntegerDataType"},
    ],
    "transformations": [
        {"className": PREFIX + "LinearTransformation", **LINEAR, "orderedDataType": "LongDataType"},
        {"className": PREFIX + "HashTransformation", "nullValue": -13},
        {
            "className": PREFIX + "CDFNumericQuantilesTransformation",
            "quantiles": [0.0, 5.5],
            "dataType": "DoubleDataType",
        },
        {"className": PREFIX + "CDFStringQuantilesTransformation", "quantiles": ["a", "b"]},
        {"className": PREFIX + "IdentityTransformation", "identityValue": 7, "orderedDataType": "IntegerDataType"},
    ],
    "use.weights": [3, 100],
}
ODD: list[Any] = [
    None, True, 0, -1, 1.5, 1e308, -1e308, 10**30, 10**400, "", "x", "LongDataType", "\ud800", [], {}, [1], [None],
    [1, "a"], [0, 0], [-1e308, 1e308], [10**400, 10**401], PREFIX + "SpiralTransformation",
    PREFIX + "NullToZeroTransformation", {"className": PREFIX + "EmptyTransformation"}, [[1]],
]  # fmt: skip


def _paths(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside: Any = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [path, *(p for key, value in inside for p in _paths(value, (*path, key)))]


CHANGES = st.lists(st.tuples(st.sampled_from(_paths(SOUND)[1:]), st.sampled_from([*ODD, "removed"])), max_size=3)


@given(CHANGES)
def test_damaged_json_is_read_or_refused(changes: list[tuple[tuple[Any, ...], Any]]) -> None:
    """A damaged revision is one that places nulls in [0, 1], or it is unreadable with a reason of one line."""
    node: Any = copy.deepcopy(SOUND)
    for path, value in changes:
        with suppress(KeyError, IndexError, TypeError):
            parent = node
            for key in path[:-1]:
                parent = parent[key]
            if value == "removed":
                del parent[path[-1]]
            else:
                parent[path[-1]] = copy.deepcopy(value)
    _check(json.dumps(node))


@given(st.text() | st.text(alphabet='{}[]",:0123456789.eE-truefalsn ', max_size=30) | st.integers().map(str))
def test_text_that_is_no_revision(text: str) -> None:
    """Any text at all."""
    _check(text)


def _check(text: str) -> None:
    conf = {"qbeast.revision.1": text, "qbeast.lastRevisionID": "1"}
    stored = stored_revisions(conf)
    assert stored.numbers == {1}
    if stored.readable:
        revision = newest_revision(conf)
        assert revision == stored.readable[1]
        assert all(0.0 <= space.coordinate(None) <= 1.0 for space in stored.readable[1].transformations)
    else:
        assert len(stored.unreadable["qbeast.revision.1"].splitlines()) == 1
        with pytest.raises(IndexFormatError, match=r"qbeast\.revision\.1'.*use\.drop_index"):
            newest_revision(conf)


def test_one_unreadable_revision_leaves_the_others() -> None:
    """Also one that is filed under another number, or under none."""
    sound = json.dumps(SOUND)
    conf = {f"qbeast.revision.{number}": sound for number in ("1", "2", "x", "")}
    stored = stored_revisions({**conf, "other": "{"})
    assert set(stored.readable) == {1}
    assert set(stored.unreadable) == {"qbeast.revision.2", "qbeast.revision.x", "qbeast.revision."}
    assert stored.numbers == {1, 2}


@pytest.mark.parametrize("number", ["2", "-", "one", "1.0", " 1", "1_0", "9" * 30])
def test_a_newest_revision_that_is_not_there(number: str) -> None:
    """A writer must not take the place of a revision that it cannot see."""
    conf = {"qbeast.revision.1": json.dumps(SOUND), "qbeast.lastRevisionID": number}
    with pytest.raises(IndexFormatError, match="lastRevisionID"):
        newest_revision(conf)


def test_staging_and_no_index_have_no_newest_revision() -> None:
    """The published format says 0, or -1 for a table without an index."""
    for conf in ({}, {"qbeast.lastRevisionID": "0"}, {"qbeast.lastRevisionID": "-1"}):
        assert newest_revision(conf) is None


def test_counted_weights_are_kept_and_never_needed() -> None:
    """They are written back, and anything else in their place is ignored."""
    revision = Revision.from_json(json.dumps(SOUND))
    assert revision.weights == WeightCardinality(rows=100, distinct_weights=3)
    assert json.loads(revision.to_json())["use.weights"] == [3, 100]
    for odd in ODD:
        other = Revision.from_json(json.dumps({**SOUND, "use.weights": odd}))
        assert other == revision
        assert (other.weights is not None) == (odd in ([0, 0], [10**400, 10**401]))


def test_gaps_of_the_weights_are_kept() -> None:
    revision = Revision.from_json(json.dumps({**SOUND, "use.weightsHaveGaps": True}))
    assert revision.weights == WeightCardinality(rows=100, distinct_weights=3, has_gaps=True)
    assert json.loads(revision.to_json())["use.weightsHaveGaps"] is True
    for odd in (False, None, 1, "true"):
        other = Revision.from_json(json.dumps({**SOUND, "use.weightsHaveGaps": odd}))
        assert other.weights == WeightCardinality(rows=100, distinct_weights=3)
        assert "use.weightsHaveGaps" not in json.loads(other.to_json())
