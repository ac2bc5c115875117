"""How many files of a commit overlap earlier ones: compared with a comparison of all pairs, without Spark."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.insights.box_overlap import LIVE, SAMPLED_FILES, FileLives, overlap_shares
from catalog.insights.commit_facts import lives_of

NAN = float("nan")
EDGE = st.one_of(st.integers(0, 6).map(float), st.just(NAN))
FILE = st.tuples(st.integers(-1, 6), st.integers(1, 8), st.integers(0, 1), EDGE, EDGE, EDGE, EDGE)


def _lives(files):
    files = sorted(files)
    return FileLives(
        added=np.array([f[0] for f in files], np.int64),
        removed=np.array([f[1] for f in files], np.int64),
        order=np.arange(len(files), dtype=np.int64),
        partition=np.array([f[2] for f in files], np.int64),
        low=np.array([f[3] for f in files], np.float64).reshape(len(files), 2 if not files else len(files[0][3])),
        high=np.array([f[4] for f in files], np.float64).reshape(len(files), 2 if not files else len(files[0][3])),
    )


def _overlaps(one, other):
    ranges = zip(one[3], one[4], other[3], other[4], strict=True)
    return one[2] == other[2] and not any(high < start or low > end for low, high, start, end in ranges)


@given(st.lists(FILE, max_size=25))
def test_shares_are_those_of_all_pairs(drawn):
    files = []
    for added, life, partition, *edges in drawn:
        low, high = tuple(map(np.fmin, edges[::2], edges[1::2])), tuple(map(np.fmax, edges[::2], edges[1::2]))
        files.append((added, added + life if life < 8 else LIVE, partition, low, high))
    expected = {}
    for version in {f[0] for f in files} - {-1}:
        earlier = [f for f in files if f[0] < version < f[1]]
        own = [f for f in files if f[0] == version]
        expected[version] = sum(any(_overlaps(f, e) for e in earlier) for f in own) / len(own)
    assert overlap_shares(_lives(files)) == pytest.approx(expected)


def test_the_newest_commits_come_first():
    files = [(version, LIVE, 0, (float(version),), (version + 1.0,)) for version in range(100)]
    assert set(overlap_shares(_lives(files), max_pairs=99 + 98)) == {98, 99}


class _Counted(np.ndarray):
    """An array that counts the entries that are looked up."""

    looked_up = 0

    def __getitem__(self, key):
        found = super().__getitem__(key)
        type(self).looked_up += np.size(found)
        return found


def test_commits_that_are_not_judged_cost_nothing():
    lives = _lives([(version, LIVE, 0, (float(version),), (version + 1.0,)) for version in range(100)])
    counted = replace(lives, removed=lives.removed.view(_Counted))
    assert set(overlap_shares(counted, max_pairs=99 + 98)) == {98, 99}
    assert _Counted.looked_up == 99 + 98
    assert overlap_shares(lives, max_pairs=0) == {}


def test_few_files_of_a_commit_are_compared():
    files = [(0, LIVE, 0, (0.0,), (float(SAMPLED_FILES),))]
    files += [(1, LIVE, 0, (float(i + 1),), (float(i + 1),)) for i in range(1000)]
    assert overlap_shares(_lives(files)) == {0: 0.0, 1: 1.0}


def _actions(rows):
    names = ("commit", "is_add", "file", "partition", "low", "high")
    schema = pa.schema(
        [(n, pa.int64() if n in ("commit", "file", "partition") else pa.list_(pa.float64())) for n in names]
    )
    schema = schema.set(1, pa.field("is_add", pa.bool_()))
    rows = [(c, a, f, 0, [v] if v is not None else [None], [v] if v is not None else [None]) for c, a, f, v in rows]
    return pa.table([pa.array(column) for column in zip(*rows, strict=True)] or [[]] * 6, schema=schema)


def test_lives_of_files():
    lives, incomplete = lives_of(
        _actions(
            [
                (5, True, 1, 1.0),
                (6, True, 2, 2.0),
                # Another deletion vector of a file from before, and of one of these commits.
                (7, True, 3, 3.0),
                (7, False, 3, None),
                (7, False, 2, None),
                (7, True, 2, 2.5),
                (8, False, 1, None),
                # Of a file of which nothing else is known.
                (9, False, 4, None),
            ]
        ),
        _actions([(-1, True, 2, 2.5), (-1, True, 3, 3.0), (-1, True, 5, 5.0)]),
        1,
    )
    rows = {}
    for file, added, removed, low in zip(lives.order, lives.added, lives.removed, lives.low[:, 0], strict=True):
        rows[int(file)] = (int(added), int(removed), float(low))
    assert rows == {1: (5, 8, 1.0), 2: (6, LIVE, 2.5), 3: (-1, LIVE, 3.0), 5: (-1, LIVE, 5.0)}
    assert incomplete == 9
