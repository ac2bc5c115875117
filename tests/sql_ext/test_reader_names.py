"""Readers without Spark: names of columns and files that are easily mistaken for each other."""

import pyarrow as pa
import pytest
from written_logs import field, struct, write_delta_table

from catalog.errors import NotSupportedError
from otree.block import Block, blocks_to_json
from otree.cube import CubeId
from otree.revision import Revision, configuration_of
from otree.transformation import LinearTransformation
from otree.transformer import Transformer
from otree.weight import MAX_WEIGHT, MIN_WEIGHT
from sql_ext import readers
from sql_ext.readers.delta_files import DeltaFiles
from sql_ext.readers.log_entries import LogEntry

INT = pa.int32()
NESTED = [
    field("id", "integer"),
    field("s", struct(field("a", "integer"))),
    field("l", {"type": "array", "elementType": struct(field("a", "integer")), "containsNull": True}),
]


def _nested(id_name, struct_name, inner):
    struct_type = pa.struct([(inner, INT)])
    columns = {id_name: pa.array([1, 2], INT), struct_name: pa.array([{inner: 10}, {inner: 20}], struct_type)}
    return pa.table({**columns, "l": pa.array([[{inner: 5}], None], pa.list_(struct_type))})


@pytest.mark.parametrize("names", [("id", "s", "a"), ("ID", "s", "a"), ("id", "s", "A"), ("Id", "S", "A")])
@pytest.mark.parametrize("where", [None, "s.a >= 10 AND id < 3"])
def test_names_of_a_file_in_another_case(tmp_path, names, where):
    path = write_delta_table(tmp_path / "t", NESTED, {"f": _nested(*names)})
    rows = [{"id": 1, "s": {"a": 10}, "l": [{"a": 5}]}, {"id": 2, "s": {"a": 20}, "l": None}]
    assert readers.scan(path, where=where).to_table().to_pylist() == rows


def test_conditions_meet_rows_of_names_in_another_case(tmp_path):
    path = write_delta_table(tmp_path / "t", NESTED, {"f": _nested("ID", "S", "A")})
    assert readers.scan(path, where="s.a = 20", columns=["id"]).to_table().to_pylist() == [{"id": 2}]
    assert readers.scan(path, where="ID IS NULL").to_table().num_rows == 0


@pytest.mark.parametrize("is_nested", [False, True])
def test_a_name_in_two_other_cases_is_refused_unless_one_is_exact(tmp_path, is_nested):
    kinds = [field("id", "integer"), field("a", "integer")]
    for number, names in enumerate([("ID", "Id", "a"), ("ID", "id", "a")]):
        columns = {name: pa.array([place], INT) for place, name in enumerate(names)}
        if is_nested:
            columns = {"s": pa.StructArray.from_arrays([*columns.values()], names)}
        fields = [field("s", struct(*kinds))] if is_nested else kinds
        path = write_delta_table(tmp_path / str(number), fields, {"f": pa.table(columns)})
        plan = readers.scan(path)
        if "id" in names:
            (row,) = plan.to_table().to_pylist()
            assert (row["s"] if is_nested else row) == {"id": 1, "a": 2}
        else:
            with pytest.raises(NotSupportedError, match="several fields for the column id: ID, Id"):
                plan.to_table()


def _mapped(tmp_path, mode):
    mapping = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "id"}
    configuration = {"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": "1"}
    rows = pa.table({"ID": pa.array([5], INT)})
    return write_delta_table(tmp_path / "t", [field("Key", "integer", **mapping)], {"f": rows}, configuration)


def test_columns_mapped_by_names_may_have_another_case(tmp_path):
    assert readers.scan(_mapped(tmp_path, "name"), where="key = 5").to_table().to_pylist() == [{"Key": 5}]


def test_columns_mapped_by_ids_need_the_names_of_the_log(tmp_path):
    with pytest.raises(NotSupportedError, match="maps columns by ids"):
        readers.scan(_mapped(tmp_path, "id")).to_table()


def _by_id(name, kind, number):
    return field(name, kind, **{"delta.columnMapping.id": number, "delta.columnMapping.physicalName": name})


def _in_file(name, kind, number):
    return pa.field(name, kind, metadata={} if number is None else {"PARQUET:field_id": str(number)})


def _in_all_types(kind):
    array = {"type": "array", "elementType": kind, "containsNull": True}
    return {"plain": kind, "array": array, "map": {"type": "map", "keyType": "string", "valueType": array}}


@pytest.mark.parametrize("around", ["plain", "array", "map"])
@pytest.mark.parametrize(
    ("names", "ids", "values"),
    [
        (("x", "y"), (3, 4), {"x": 7, "y": 8}),
        (("y", "X"), (4, 3), {"x": 8, "y": 7}),
        (("y", "other"), (4, 9), {"x": None, "y": 7}),
        (("x_old", "y"), (3, 4), None),
        (("y", "x"), (3, 4), None),
        (("x", "y"), (3, None), None),
        (("y", "other"), (4, None), {"x": None, "y": 7}),
        (("other", "more"), (None, None), None),
        (("x", "y", "z"), (3, 4, 3), None),
    ],
    ids=[
        "same",
        "other case",
        "later field",
        "renamed",
        "exchanged",
        "no id",
        "beside one without id",
        "no ids",
        "twice",
    ],
)
def test_fields_mapped_by_ids(tmp_path, around, names, ids, values):
    kind = struct(_by_id("x", "integer", 3), _by_id("y", "integer", 4))
    stored = pa.struct([_in_file(name, INT, number) for name, number in zip(names, ids, strict=True)])
    types = {"plain": stored, "array": pa.list_(stored), "map": pa.map_(pa.string(), pa.list_(stored))}
    row = dict(zip(names, (7, 8, 9), strict=False))
    column = pa.array([{"plain": row, "array": [row], "map": [("k", [row])]}[around]], types[around])
    rows = pa.Table.from_arrays([column], schema=pa.schema([_in_file("s", types[around], 2)]))
    configuration = {"delta.columnMapping.mode": "id", "delta.columnMapping.maxColumnId": "9"}
    path = write_delta_table(tmp_path / "t", [_by_id("s", _in_all_types(kind)[around], 2)], {"f": rows}, configuration)
    if values is None:
        with pytest.raises(NotSupportedError, match="maps columns by ids"):
            readers.scan(path).to_table()
    else:
        expected = {"plain": values, "array": [values], "map": [("k", [values])]}[around]
        assert readers.scan(path).to_table()["s"].to_pylist() == [expected]


def test_columns_mapped_by_ids_whose_names_are_exchanged(tmp_path):
    rows = pa.table(
        [pa.array([1], INT), pa.array([2], INT)], schema=pa.schema([_in_file("b", INT, 1), _in_file("a", INT, 2)])
    )
    configuration = {"delta.columnMapping.mode": "id", "delta.columnMapping.maxColumnId": "2"}
    fields = [_by_id("a", "integer", 1), _by_id("b", "integer", 2)]
    path = write_delta_table(tmp_path / "t", fields, {"f": rows}, configuration)
    with pytest.raises(NotSupportedError, match="maps columns by ids"):
        readers.scan(path).to_table()


# ------------------------------------------------------------------------------------------------- CHAR inside of types

RAW = "__CHAR_VARCHAR_TYPE_STRING"
TEXTS = {"type": "array", "elementType": "string", "containsNull": True}


@pytest.mark.parametrize(
    ("kind", "raw", "values"),
    [
        (struct(field("c", "string")), "struct<c:char(5)>", [{"c": "ab"}]),
        (TEXTS, "array<char(5)>", [["ab"]]),
        ({"type": "map", "keyType": "string", "valueType": TEXTS}, "map<varchar(2),array<char(5)>>", None),
    ],
    ids=["struct", "array", "map"],
)
def test_char_inside_of_other_types_is_refused_where_it_is_read(tmp_path, kind, raw, values):
    fields = [field("id", "integer"), field("s", kind, **{RAW: raw})]
    rows = {"id": pa.array([1], INT)} if values is None else {"id": pa.array([1], INT), "s": pa.array(values)}
    path = write_delta_table(tmp_path / "t", fields, {"f": pa.table(rows)})
    assert readers.scan(path, where="id = 1", columns=["id"]).to_table().to_pylist() == [{"id": 1}]
    for arguments in ({}, {"columns": ["s"]}, {"columns": ["id"], "where": "s IS NOT NULL"}):
        with pytest.raises(NotSupportedError, match=r"CHAR\(n\) inside of the column s"):
            readers.scan(path, **arguments)


def test_an_index_of_char_inside_of_a_struct_is_not_used(tmp_path):
    fields = [field("id", "integer"), field("s", struct(field("c", "string")), **{RAW: "struct<c:char(5)>"})]
    rows = pa.table({"id": pa.array([1], INT), "s": pa.array([{"c": "ab"}])})
    path = _indexed_by(tmp_path, "s.c", fields, {"low": rows, "high": rows})
    with pytest.raises(NotSupportedError, match=r"CHAR\(n\) inside of the column s"):
        readers.scan(path, 0.5, columns=["id"])
    assert readers.scan(path, where="id = 1", columns=["id"]).files == 2


def test_varchar_inside_of_other_types_is_read(tmp_path):
    fields = [field("s", struct(field("c", "string")), **{RAW: "struct<c:varchar(5)>"})]
    path = write_delta_table(tmp_path / "t", fields, {"f": pa.table({"s": pa.array([{"c": "ab"}])})})
    assert readers.scan(path, where="s.c = 'ab'").to_table().num_rows == 1


def test_fields_have_no_width_of_their_own(tmp_path):
    """CREATE TABLE AS SELECT keeps the metadata of a column in a field, where Spark does not look for it."""
    fields = [field("s", struct(field("c", "string", **{RAW: "char(5)"})))]
    path = write_delta_table(tmp_path / "t", fields, {"f": pa.table({"s": pa.array([{"c": "ab"}])})})
    assert readers.scan(path, where="s.c = 'ab'").to_table().num_rows == 1


# ---------------------------------------------------------------------------------------- columns with one joined name


def _indexed_by(tmp_path, column, fields, halves):
    """A table with a file per half of an index by ``column`` of 0 to 1000."""
    revision = Revision(
        1, 0, "/t", 100, (Transformer("linear", column, "IntegerDataType"),),
        (LinearTransformation(0, 1000, 500, "IntegerDataType"),),
    )  # fmt: skip
    tags = {}
    for name, coordinate in (("low", 0.1), ("high", 0.9)):
        cube = CubeId.of_point([coordinate], 1)
        blocks = [Block(cube.text, MIN_WEIGHT, MAX_WEIGHT, halves[name].num_rows)]
        tags[name] = {"revision": "1", "blocks": blocks_to_json(blocks)}
    return write_delta_table(tmp_path / "t", fields, halves, configuration_of([revision]), tags)


def _dotted(first, second):
    """Two columns whose values are stored as ``a.b.c``."""
    return pa.table({
        "a": pa.array([{"b.c": value} for value in first], pa.struct([("b.c", INT)])),
        "a.b": pa.array([{"c": value} for value in second], pa.struct([("c", INT)])),
    })  # fmt: skip


def _flat(first, second):
    """A column ``x.y`` beside a field of ``x``."""
    return pa.table({"x.y": pa.array(first, INT), "x": pa.array([{"y": value} for value in second])})


DOTTED = [field("a", struct(field("b.c", "integer"))), field("a.b", struct(field("c", "integer")))]
FLAT = [field("x.y", "integer"), field("x", struct(field("y", "integer")))]


@pytest.mark.parametrize(
    ("fields", "rows", "column", "names"),
    [(DOTTED, _dotted, "a.b.c", ["a.`b.c`", "`a.b`.c"]), (FLAT, _flat, "x.y", ["`x.y`", "x.y"])],
    ids=["nested", "top level"],
)
def test_the_index_of_another_column_skips_no_file(tmp_path, fields, rows, column, names):
    halves = {"low": rows([1, 2], [901, 902]), "high": rows([903, 904], [3, 4])}
    path = _indexed_by(tmp_path, column, fields, halves)
    for name in names:
        assert readers.scan(path, where=f"{name} < 100").to_table().num_rows == 2, name
    with pytest.raises(NotSupportedError, match=f"several of its columns are called {column}"):
        readers.scan(path, 0.5)


def test_the_index_of_a_column_with_a_name_of_its_own_skips_files(tmp_path):
    halves = {"low": _dotted([1, 2], [901, 902]).select(["a"]), "high": _dotted([903], [3]).select(["a"])}
    path = _indexed_by(tmp_path, "a.b.c", DOTTED[:1], halves)
    assert readers.scan(path, where="a.`b.c` < 100").paths == ("low",)


# -------------------------------------------------------------------------------------------------- encoded paths


def test_files_whose_names_differ_by_their_encoding(tmp_path):
    files = {name: pa.table({"id": pa.array([n], INT)}) for n, name in enumerate(("a%20b", "a%2520b", "a%252520b"))}
    tags = {name: {"name": name} for name in files}
    path = write_delta_table(tmp_path / "t", [field("id", "integer")], files, tags=tags)
    table = DeltaFiles.of(path, None, {})
    assert {file.path: file.tags for file in table.files} == tags
    assert sorted(readers.scan(path).to_table()["id"].to_pylist()) == [0, 1, 2]


def test_an_entry_is_that_of_the_very_path(tmp_path, monkeypatch):
    path = write_delta_table(tmp_path / "t", [field("id", "integer")], {"a%20b": pa.table({"id": pa.array([1], INT)})})
    other = LogEntry({"name": "a b"}, None, times_are_known=True)
    monkeypatch.setattr("sql_ext.readers.delta_files.entries_of_files", lambda *_: {"a b": other})
    (file,) = DeltaFiles.of(path, None, {}).files
    assert file.tags == {}
