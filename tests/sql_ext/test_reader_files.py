"""Entries of the log, deletion vectors, the selection of files and conditions, without Spark and without a table."""

import json
import re
import struct
import zlib
from itertools import pairwise
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.errors import InvalidArgumentError, NotSupportedError, UseError
from catalog.predicates.conditions import Not
from otree.block import BAND_TAG, Block, blocks_to_json
from otree.weight import MAX_WEIGHT, MIN_WEIGHT, bounds_of_draw, draws_of
from sql_ext.readers.deletion_vectors import deleted_positions
from sql_ext.readers.delta_files import DeltaFile, causes_of
from sql_ext.readers.file_selection import IndexedFiles
from sql_ext.readers.file_statistics import file_test
from sql_ext.readers.log_entries import entries_of_files
from sql_ext.readers.row_conditions import index_condition, parsed
from sql_ext.readers.row_masks import mask_of
from sql_ext.readers.table_columns import TableColumns

TAGS = pa.map_(pa.string(), pa.string())
ADD = pa.struct([("path", pa.string()), ("tags", TAGS)])
SIDECAR = pa.struct([("path", pa.string())])
TYPES = {
    "a": "integer", "d": "double", "s": "string", "t": "timestamp", "b": "boolean", "k": "long", "f": "float",
    "n": "decimal(10,2)", "c": "string", "u": "string",
}  # fmt: skip
METADATA = {"c": {"__CHAR_VARCHAR_TYPE_STRING": "char(4)"}, "u": {"__COLLATIONS": {"u": "spark.UTF8_LCASE"}}}
COLUMNS = TableColumns(
    tuple({"name": name, "type": kind, "metadata": METADATA.get(name, {})} for name, kind in TYPES.items()), ()
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


def _entries(log, version):
    return entries_of_files(pafs.SubTreeFileSystem(str(log.parent), pafs.LocalFileSystem()), version)


def _tags(log, version):
    return {path: entry.tags.get("revision") for path, entry in _entries(log, version).items()}


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


def test_a_commit_may_add_a_file_before_it_removes_it(log):
    vector = {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}
    _commit(log, 0, {"add": _add("a", "1")})
    _commit(log, 1, {"add": {**_add("a", "2"), "deletionVector": vector}}, {"remove": {"path": "a"}})
    assert _entries(log, 0)["a"].deletion_vector is None
    assert _entries(log, 1)["a"].deletion_vector == vector
    assert _tags(log, 1) == {"a": "2"}


@pytest.mark.parametrize("is_int96", [False, True])
def test_times_of_statistics_beyond_2262_are_unknown(log, is_int96):
    last = (2**63 - 1) // 1000
    moments = {"a": 0, "b": last + 1, "c": None, "d": -last - 2, "e": last - 2_000, "f": 2**62}
    # Its day is negative, and is read as one without a sign, which has the microseconds of 1970 in 64 bits.
    moments["g"] = -(2**32 * 86_400_000_000 % 2**64)
    times = pa.array(moments.values(), pa.timestamp("us"))
    low = pa.StructArray.from_arrays([pa.StructArray.from_arrays([times], ["t.s"])], ["outer"])
    high = pa.StructArray.from_arrays([pa.array([1] * len(moments)), low], ["n", "outer"])
    statistics = pa.StructArray.from_arrays([low, high], ["minValues", "maxValues"])
    add = pa.StructArray.from_arrays([pa.array(moments), statistics], ["path", "stats_parsed"])
    checkpoint = log / f"{0:020}.checkpoint.parquet"
    pq.write_table(pa.table({"add": add}), checkpoint, use_deprecated_int96_timestamps=is_int96)
    found = {path: entry.times_are_known for path, entry in _entries(log, 0).items()}
    assert found == {path: not is_int96 or path in "ace" for path in moments}


@pytest.mark.parametrize(
    "text",
    ["{", '{"add": 3}', '{"add": {"path": "a", "tags": 7}}', "[]", "null", f'{{"x": {"[" * 10**5}{"]" * 10**5}}}'],
    ids=["open", "number", "tags", "list", "null", "deep"],
)
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


# ---------------------------------------------------------------------------------------------- deletion vectors


def _container(values, is_run):
    if is_run:
        return struct.pack("<HHH", 1, values[0], len(values) - 1)
    if len(values) > 4096:
        return np.packbits(np.isin(np.arange(2**16), values), bitorder="little").tobytes()
    return np.array(values, dtype="<u2").tobytes()


def _bitmap(containers, has_runs):
    """A portable Roaring bitmap: containers are tuples of key, values, and whether they are a run."""
    parts = [_container(values, is_run) for _, values, is_run in containers]
    keys = b"".join(struct.pack("<HH", key, len(values) - 1) for key, values, _ in containers)
    count = len(containers)
    if has_runs:
        flags = np.packbits([is_run for *_, is_run in containers], bitorder="little").tobytes()
        head = struct.pack("<I", 12347 | (count - 1) << 16) + flags + keys
    else:
        head = struct.pack("<II", 12346, count) + keys
    if not has_runs or count >= 4:
        head += b"\0" * 4 * count  # the offsets, which a reader from start to end does not need
    return head + b"".join(parts)


def _vector(bitmaps):
    data = struct.pack("<iq", 1681511377, len(bitmaps))
    return data + b"".join(struct.pack("<I", key) + bitmap for key, bitmap in bitmaps)


def _positions(tmp_path, data, **changes):
    (tmp_path / "ab").mkdir(exist_ok=True)
    name = UUID(int=0x0102030405060708090A0B0C0D0E0F10)
    stored = struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    (tmp_path / "ab" / f"deletion_vector_{name}.bin").write_bytes(b"\1" + stored)
    descriptor = {"storageType": "u", "pathOrInlineDv": "ab" + _z85(name.bytes), "offset": 1, "sizeInBytes": len(data),
                  **changes}  # fmt: skip
    files = pafs.SubTreeFileSystem(str(tmp_path), pafs.LocalFileSystem())
    return deleted_positions(files, descriptor).tolist()


def _z85(data):
    alphabet = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    words = [int.from_bytes(data[at : at + 4], "big") for at in range(0, len(data), 4)]
    return "".join(alphabet[word // 85**place % 85] for word in words for place in (4, 3, 2, 1, 0))


LONG = list(range(0, 12_000, 2))
SHAPES = {
    "empty": ([], []),
    "array": ([(0, _bitmap([(0, [1, 5, 65_535], False)], False))], [1, 5, 65_535]),
    "bitmap": ([(0, _bitmap([(1, LONG, False)], False))], [65_536 + n for n in LONG]),
    "run": ([(0, _bitmap([(0, [7, 8, 9], True), (2, [3], False)], True))], [7, 8, 9, 131_075]),
    "runs with offsets": (
        [(0, _bitmap([(key, [key, key + 1], key % 2 == 0) for key in range(5)], True))],
        [65_536 * key + key + more for key in range(5) for more in (0, 1)],
    ),
    "above 2^32": (
        [(0, _bitmap([(0, [1], False)], False)), (3, _bitmap([(0, [2], False)], False))],
        [1, 3 * 2**32 + 2],
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_deletion_vectors(tmp_path, shape):
    bitmaps, positions = SHAPES[shape]
    data = _vector(bitmaps)
    assert _positions(tmp_path, data, cardinality=len(positions)) == positions
    padded = data + b"\0" * (-len(data) % 4)
    assert (
        _positions(tmp_path, data, cardinality=len(positions), storageType="i", pathOrInlineDv=_z85(padded))
        == positions
    )


@pytest.mark.parametrize(
    "changes",
    [{"cardinality": 2}, {"sizeInBytes": 5}, {"offset": 2}, {"storageType": "p"}, {"pathOrInlineDv": "~" * 20}],
)
def test_other_deletion_vectors_are_refused(tmp_path, changes):
    data = _vector(SHAPES["array"][0])
    with pytest.raises((NotSupportedError, OSError), match=r"deletion vector|No such file"):
        _positions(tmp_path, data, **{"cardinality": 3, **changes})


def test_a_vector_outside_of_the_table_is_not_read(tmp_path):
    with pytest.raises(NotSupportedError, match="outside of the table"):
        _positions(tmp_path, _vector(SHAPES["array"][0]), cardinality=3, pathOrInlineDv="a/../../b" + "0" * 20)


@pytest.mark.parametrize("changes", [{"sizeInBytes": 10**15}, {"offset": 10**400}], ids=["size", "offset"])
def test_a_vector_beyond_its_file_is_not_read(tmp_path, changes):
    with pytest.raises(NotSupportedError, match="longer than its file"):
        _positions(tmp_path, _vector(SHAPES["array"][0]), **{"cardinality": 3, **changes})


def test_runs_that_overlap_take_no_memory(tmp_path):
    """Of a few kilobytes, 65,535 runs of all rows would make 34 GB."""
    runs = struct.pack("<H", 1_000) + struct.pack("<HH", 0, 65_535) * 1_000
    bitmap = struct.pack("<I", 12347) + b"\1" + struct.pack("<HH", 0, 9) + runs
    with pytest.raises(NotSupportedError, match="runs overlap"):
        _positions(tmp_path, _vector([(0, bitmap)]), cardinality=10)


@pytest.mark.parametrize(
    "descriptor",
    [
        {},
        {"cardinality": "1"},
        {"cardinality": 2**63},
        {"sizeInBytes": -1},
        {"offset": "x"},
        {"storageType": 7},
        {"pathOrInlineDv": None},
    ],
    ids=str,
)
def test_a_log_with_a_wrong_descriptor_has_no_entries(tmp_path, descriptor):
    log = tmp_path / "_delta_log"
    log.mkdir()
    sound = {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 5, "cardinality": 1}
    add = {"path": "a", "deletionVector": {**sound, **descriptor} if descriptor else {"x": 1}}
    _commit(log, 0, {"add": add})
    assert entries_of_files(pafs.SubTreeFileSystem(str(tmp_path), pafs.LocalFileSystem()), 0) == {}


# ------------------------------------------------------------------------------------------------------ statistics


@pytest.mark.parametrize(
    ("low", "high", "where", "may_be"),
    [
        (-10.310118564421342, 1.0, "d = -10.310118564421344", True),
        (-10.310118564421342, 1.0, "d = -10.31011856443", False),
        (0.0, 10.310118564421342, "d >= 10.310118564421344", True),
        (1.0, float("nan"), "d = 5", True),
        (1.0, float("nan"), "d < 0.99", False),
        (1.0, float("inf"), "d = 'inf'", True),
        (float("-inf"), 1.0, "d = '-inf'", True),
        (float("inf"), float("inf"), "d = 'inf'", True),
        (0.0, 0.0, "d = -0.0", True),
        (0.0, 0.0, "d = 5e-324", True),
        (None, 1.0, "d = 5", True),
    ],
)
def test_bounds_of_numbers_have_a_margin(low, high, where, may_be):
    file = DeltaFile("f", 1, {}, {"d": low}, {"d": high}, {"d": 0}, 2, {})
    assert file_test(parsed(where, COLUMNS.find))(file) is may_be


def test_a_column_stored_under_the_name_of_a_partition_has_statistics_of_its_own():
    def field(name, stored):
        return {"name": name, "type": "integer", "metadata": {"delta.columnMapping.physicalName": stored}}

    columns = TableColumns((field("q", "p"), field("p", "col-1"), field("r", "q")), ("q",))
    file = DeltaFile("f", 1, {"q": 1}, {"q": 100, "col-1": 10}, {"q": 101, "col-1": 11}, {"q": 0, "col-1": 0}, 2, {})
    tests = {where: file_test(parsed(where, columns.find))(file) for where in ("q = 1", "p = 10", "r = 100", "r = 1")}
    assert tests == {"q = 1": True, "p = 10": True, "r = 100": True, "r = 1": False}


@pytest.mark.parametrize("stored", ["ab", "ab  "])
def test_partitions_of_char_are_padded_as_rows_are(stored):
    def may_hold(where):
        return file_test(parsed(where, COLUMNS.find))(DeltaFile("f", 1, {"c": stored}, {}, {}, {}, 2, {}))

    assert all(map(may_hold, ("c = 'ab'", "c IN ('ab', 'x')", "c <> 'a'", "c > 'ab\x01'")))
    assert not any(map(may_hold, ("c = 'a'", "c < 'ab'", "c IS NULL")))


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
        assert file_test(condition)(_file(row)) or not holds, (text, row)


@given(TREES)
def test_not_negates_and_keeps_nulls(text):
    condition, negated = parsed(text, COLUMNS.find), parsed(f"NOT ({text})", COLUMNS.find)
    assert [None if v is None else not v for v in _rows(condition)] == _rows(negated)
    assert repr(index_condition(negated, COLUMNS)) == repr(
        Not(index_condition(condition, COLUMNS))
    )  # NaN is not equal to itself


def test_conditions_by_hand():
    expected = {
        "d > 1": [None, True, False, False, True],
        "d = 'NaN' OR a IS NULL": [True, True, False, False, False],
        "s < 'b' AND NOT b": [None, False, True, False, False],
        "a IN (3, NULL)": [None, None, None, True, None],
        "`A` == 3": [None, False, False, True, False],
        "s NOT LIKE 'a%'": [None, True, False, False, True],
        "NOT s NOT LIKE 'a%'": [None, False, True, True, False],
        "s LIKE 'ab'": [None, False, False, True, False],
        "s NOT IN ('a', 'ab')": [None, True, False, False, True],
        "a NOT BETWEEN 0 AND 3": [None, True, False, False, True],
        "a IS DISTINCT FROM 3": [True, True, True, False, True],
        "a IS NOT DISTINCT FROM NULL": [True, False, False, False, False],
        "b IS NOT TRUE": [True, False, True, False, True],
        "!b": [None, False, True, False, True],
        "d = 0.0": [None, False, True, False, False],
        "d IN (-0e0, double('NaN'))": [None, True, True, False, False],
        "d = 5D OR a = 7L": [None, False, False, False, True],
        "(a) = ((3))": [None, False, False, True, False],
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
        ("a BETWEEN SYMMETRIC 3 AND 1", "(symmetric)"),
        ("s NOT ILIKE 'a%'", "ILIKE"),
        ("s NOT LIKE 'a%' ESCAPE '/'", "ESCAPE"),
        ("d = -'inf'", "is none"),
        ("d = 1e400", "is none"),
        ("a = 1e999999999", "is none"),
        ("a = 1.5D", "is none"),
        ("a = TRY_CAST(1 AS INT)", "is none"),
        ("d = CAST(1 AS INT)::DOUBLE", "is none"),
        ("k = 9007199254740993e0", "is none"),
        ("k IN (1e0)", "is none"),
        ("n = 1e0", "is none"),
        ("n = 1.125", "is none"),
        ("n = 1.000000000000000000000000000000000000", "is none"),
        ("t > '2020-01-01 12:00:00+25:00'", "is none"),
        ("t > '20200101'", "is none"),
        ("c = 'abcde'", "at most 4 characters"),
        ("c IN ('a', NULL)", "Spark pads a list with NULL in another way"),
        ("u = 'a'", "collation spark.UTF8_LCASE"),
        ("u LIKE 'a%'", "and not u LIKE"),
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


def test_causes_of_an_error_are_one_line():
    error = OSError(
        "Generic S3 error\n  \x1b[31m↳\x1b[0m Error performing list request\n   \x1b[31m↳\x1b[0m 404 Not Found."
    )
    assert causes_of(error) == "Generic S3 error: Error performing list request: 404 Not Found"
    assert causes_of(ValueError()) == "ValueError"
