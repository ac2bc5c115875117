"""Tags in the log, the selection of files and the parser of conditions, without Spark and without a table."""

import json
import re
from itertools import pairwise

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.errors import InvalidArgumentError, UseError
from otree.block import BAND_TAG, Block, blocks_to_json
from otree.weight import MAX_WEIGHT, MIN_WEIGHT, bounds_of_draw, draws_of
from sql_ext.readers.delta_files import DeltaFile
from sql_ext.readers.file_selection import IndexedFiles
from sql_ext.readers.file_statistics import may_have_rows
from sql_ext.readers.log_tags import tags_of_files
from sql_ext.readers.row_conditions import mask_of, parsed, tree_of
from sql_ext.readers.table_columns import TableColumns

TAGS = pa.map_(pa.string(), pa.string())
ADD = pa.struct([("path", pa.string()), ("tags", TAGS)])
SIDECAR = pa.struct([("path", pa.string())])
COLUMNS = TableColumns(
    tuple(
        {"name": name, "type": kind, "metadata": {}}
        for name, kind in (("a", "integer"), ("d", "double"), ("s", "string"), ("t", "timestamp"), ("b", "boolean"))
    ),
    (),
)

# --------------------------------------------------------------------------------------------------------- tags


def _commit(log, version, *actions):
    (log / f"{version:020}.json").write_text("\n".join(map(json.dumps, actions)) + "\n", encoding="utf-8")


def _add(path, revision):
    return {"path": path, "tags": {"revision": revision}}


def _parquet(path, adds=(), sidecars=()):
    rows = [{"add": {**add, "tags": list(add["tags"].items())}, "sidecar": None} for add in adds]
    rows += [{"add": None, "sidecar": {"path": name}} for name in sidecars]
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, pa.schema([("add", ADD), ("sidecar", SIDECAR)])), path)


@pytest.fixture
def log(tmp_path):
    folder = tmp_path / "_delta_log"
    folder.mkdir()
    return folder


def _tags(log, version):
    found = tags_of_files(pafs.SubTreeFileSystem(str(log.parent), pafs.LocalFileSystem()), version)
    return {path: tags.get("revision") for path, tags in found.items()}


@pytest.mark.parametrize("kind", ["none", "classic", "parts", "v2 json", "v2 parquet"])
def test_tags_from_checkpoints_and_commits(log, kind):
    _commit(log, 0, {"add": _add("a", "1")}, {"add": _add("b", "1")})
    _commit(log, 1, {"remove": {"path": "a"}}, {"add": _add("c", "1")})
    sidecar, name = "x.parquet", f"{1:020}.checkpoint"
    match kind:
        case "classic":
            _parquet(log / f"{name}.parquet", [_add("b", "1"), _add("c", "1")])
        case "parts":
            _parquet(log / f"{name}.{1:010}.{2:010}.parquet", [_add("b", "1")])
            _parquet(log / f"{name}.{2:010}.{2:010}.parquet", [_add("c", "1")])
            # An incomplete one that is newer does not count.
            _parquet(log / f"{2:020}.checkpoint.{1:010}.{2:010}.parquet", [_add("zz", "1")])
        case "v2 json" | "v2 parquet":
            _parquet(log / "_sidecars" / sidecar, [_add("b", "1"), _add("c", "1")])
            uid = "0a1b2c3d-0000-4000-8000-000000000000"
            if kind == "v2 json":
                text = json.dumps({"sidecar": {"path": sidecar}})
                (log / f"{name}.{uid}.json").write_text(text, encoding="utf-8")
            else:
                _parquet(log / f"{name}.{uid}.parquet", sidecars=[sidecar])
    if kind != "none":
        (log / f"{0:020}.json").unlink()
    _commit(log, 2, {"add": _add("b", "2")}, {"add": {"path": "d", "tags": None}}, {"commitInfo": {}})
    assert _tags(log, 2) == {"b": "2", "c": "1", "d": None}
    assert _tags(log, 1) == {"b": "1", "c": "1"}


@pytest.mark.parametrize("text", ["{", '{"add": 3}', '{"add": {"path": "a", "tags": 7}}', "[]", "null"])
def test_a_log_that_cannot_be_read_costs_bytes_only(log, text, caplog):
    (log / f"{0:020}.json").write_text(text, encoding="utf-8")
    assert _tags(log, 0) == {}
    assert "every file is read" in caplog.text


# ------------------------------------------------------------------------------------------------------ selection


def _plan(lower, upper, first=MIN_WEIGHT, last=MAX_WEIGHT):
    box = {"first_weight": first, "last_weight": last, "lower": lower, "upper": upper}
    return IndexedFiles(json.dumps({"revisions": {"1": {"dimensions": 2, "boxes": [box]}}}))


def test_files_by_cubes_and_weights():
    block = Block("A", -100, 100, 5)  # [0, 1/2] in both dimensions
    tags = {"revision": "1", "blocks": blocks_to_json([block])}
    assert _plan([0.2, 0.2], [0.3, 0.3]).may_have_rows(tags)
    assert _plan([0.5, 0.2], [0.6, 0.3]).may_have_rows(tags)
    assert not _plan([0.6, 0.2], [0.7, 0.3]).may_have_rows(tags)
    assert not _plan([0, 0], [1, 1], first=101).may_have_rows(tags)
    assert not _plan([0, 0], [1, 1], last=-101).may_have_rows(tags)
    # The band is narrower, and counts if the block begins in it.
    assert not _plan([0, 0], [1, 1], first=60).may_have_rows({**tags, BAND_TAG: "-200,50"})
    assert _plan([0, 0], [1, 1], first=60).may_have_rows({**tags, BAND_TAG: "0,50"})
    whole = _plan([0.9, 0.9], [1, 1])
    odd = blocks_to_json([Block("?", 0, 0, 1)])
    for changed in ({"blocks": "["}, {"blocks": "[{}]"}, {"revision": "7"}, {"blocks": odd}):
        assert whole.may_have_rows({**tags, **changed})
    assert whole.may_have_rows({})
    assert IndexedFiles(None).may_have_rows(tags)


# ----------------------------------------------------------------------------------------------------- conditions


VALUES = {
    "a": [None, -5, 0, 3, 7],
    "d": [None, float("nan"), -0.0, 0.5, 3.0],
    "s": [None, "", "a", "ab", "ß"],
    "b": [None, True, False, True, False],
}
LEAVES = st.sampled_from(
    ["a = 3", "a <> 3", "a < 3", "a >= 0", "3 > a", "a BETWEEN -5 AND 3", "a IN (7, NULL)", "a IS NULL", "a <=> NULL",
     "d > 0.1", "d <= 0", "d = 'NaN'", "d >= 'NaN'", "d < 'NaN'", "s LIKE 'a%'", "s >= 'ab'", "b", "s IS NOT NULL"]
)  # fmt: skip
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        inner.map(lambda c: f"NOT ({c})"),
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(lambda p: f"({' '.join(p)})"),
    ),
    max_leaves=6,
)  # fmt: skip


def _rows(condition):
    mask = mask_of(condition, lambda c: pa.array(VALUES[c.name], COLUMNS.schema.field(c.name).type), 5)
    return mask.to_pylist()


def _file(row):
    values = {name: VALUES[name][row] for name in VALUES}
    known = {name: None if isinstance(v, float) and v != v else v for name, v in values.items()}
    nulls = {name: int(v is None) for name, v in values.items()}
    return DeltaFile("f", 1, {}, known, known, nulls, 1, {})


@given(TREES)
def test_no_file_with_a_row_is_skipped(text):
    condition = parsed(text, COLUMNS.find)
    for row, holds in enumerate(_rows(condition)):
        assert may_have_rows(_file(row), condition) or not holds, (text, row)


@given(TREES)
def test_not_negates_and_keeps_nulls(text):
    condition, negated = parsed(text, COLUMNS.find), parsed(f"NOT ({text})", COLUMNS.find)
    assert [None if v is None else not v for v in _rows(condition)] == _rows(negated)
    assert json.loads(json.dumps(tree_of(condition))) == tree_of(condition)


def test_conditions_by_hand():
    expected = {
        "d > 1": [None, True, False, False, True],
        "d = 'NaN' OR a IS NULL": [True, True, False, False, False],
        "s < 'b' AND NOT b": [None, False, True, False, False],
        "a IN (3, NULL)": [None, None, None, True, None],
        "`A` == 3": [None, False, False, True, False],
    }
    for text, rows in expected.items():
        assert _rows(parsed(text, COLUMNS.find)) == rows, text


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("a = 1.5", "1.5 is none"),
        ("a = 99999999999", "99999999999 is none"),
        ("a = 'x'", "'x' is none"),
        ("t > '2020-13-01'", "TIMESTAMP"),
        ("abs(a) = 1", "and not ABS(a) = 1"),
        ("a = d", "is none"),
        ("a + 1 = 2", "and not a + 1 = 2"),
        ("s LIKE '%a'", "and not s LIKE"),
        ("s LIKE 'a_%'", "and not s LIKE"),
        ("a", "and not a"),
        ("a IN (SELECT 1)", "and not a IN"),
        ("a = 1 ORDER BY a", "one condition"),
        ("a = ", "cannot be parsed"),
        ("", "cannot be parsed"),
        ("nope = 1", "no column 'nope'"),
    ],
)
def test_refused_conditions(text, part):
    with pytest.raises(UseError, match=re.escape(part)) as refused:
        parsed(text, COLUMNS.find)
    assert isinstance(refused.value, InvalidArgumentError) or "nope" in text


# ---------------------------------------------------------------------------------------------------------- draws


@given(st.integers(1, 500))
def test_draws_of_a_whole_part_are_complete(count):
    fraction = 1 / count
    assert draws_of(fraction) == count
    bounds = [bounds_of_draw(fraction, draw) for draw in range(1, count + 1)]
    assert (bounds[0][0], bounds[-1][1]) == (0.0, 1.0)
    assert all(one[1] == other[0] for one, other in pairwise(bounds))


@given(st.floats(1e-6, 1.0))
def test_draws_of_any_fraction(fraction):
    draws = draws_of(fraction)
    assert draws >= 1
    assert bounds_of_draw(fraction, draws)[1] <= 1.0 + 1e-9
    for draw in (0, draws + 1):
        with pytest.raises(ValueError, match="from 1 to"):
            bounds_of_draw(fraction, draw)
