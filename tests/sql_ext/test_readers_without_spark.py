"""Readers of stored tables that Spark made: random conditions, all values, and all forms; no Spark."""

import itertools
import math
import shutil
from pathlib import Path

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from reader_tables import stored_tables
from readers_fuzz import run

from catalog.errors import FileSystemError, InvalidArgumentError, NotSupportedError, TableError, VersionError
from sql_ext import readers

INDEXED = ("indexed", "changed", "checkpointed", "widened")


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    return {table.name: table for table in stored_tables(tmp_path_factory.mktemp("readers"))}


def test_random_conditions(tables):
    """A failure names its seed: ``make fuzz-readers ARGS="--seed N --count 1"`` repeats it."""
    outcome = run(list(tables.values()), seed=0, count=1_000)
    assert not outcome.failures, outcome.failures[0]
    # Readers that open every file, or refuse every condition, would pass as well.
    assert outcome.read < 0.7 * outcome.files
    assert outcome.refused < 0.07 * outcome.count
    assert outcome.met > 10 * outcome.count
    assert set(outcome.operators) >= {"=", "<=>", "<", "<=", ">", ">=", "in", "is_null", "starts_with", "not", "or"}


def _plain(value, kind):
    if value is None or not isinstance(value, float):
        return value
    return repr(value)


def _column(table, name):
    array = table[name.split(".")[0]].combine_chunks()
    array = pc.struct_field(array, name.split(".")[1]) if "." in name else array
    kind = array.type
    array = array.cast(pa.int32()) if pa.types.is_date(kind) else array
    array = array.cast(pa.int64()) if pa.types.is_timestamp(kind) else array
    return [repr(value) if isinstance(value, float) else value for value in array.to_pylist()]


def test_values(tables):
    for table in tables.values():
        found = readers.scan(str(table.path)).to_table()
        ids = found["id"].to_pylist()
        assert sorted(ids) == sorted(row["id"] for row in table.rows)
        for name in table.kinds:
            right = {row["id"]: _plain(row[name], table.kinds[name]) for row in table.rows}
            assert dict(zip(ids, _column(found, name), strict=True)) == right, (table.name, name)


@pytest.mark.parametrize("name", INDEXED)
def test_forms_limits_and_samples_of_a_condition(tables, name):
    table = tables[name]
    path, condition = str(table.path), "id NOT IN (3, 30) AND st.s IS NOT NULL"
    ids = sorted(r["id"] for r in table.rows if r["id"] not in (3, 30) and r["st.s"] is not None)
    plan = readers.scan(path, where=condition, columns=["st", "ID"])
    assert plan.columns == ("st", "id")
    arrow = plan.to_table()
    assert sorted(arrow["id"].to_pylist()) == ids
    assert plan.to_batches().read_all().equals(arrow)
    assert plan.to_dataset().to_table().equals(arrow)
    assert sorted(plan.to_pandas()["id"]) == ids
    lazy = plan.to_polars()
    assert sorted(lazy.collect()["id"]) == ids
    assert len(lazy.head(5).collect()) == 5
    assert sorted(row[0] for row in plan.to_duckdb().project("id").fetchall()) == ids
    draws = [readers.scan(path, 0.25, condition, ["id"], draw=n).to_table()["id"].to_pylist() for n in (1, 2, 3, 4)]
    assert sorted(itertools.chain(*draws)) == ids
    assert sum(map(bool, draws)) > 1


def test_versions(tables):
    path = str(tables["changed"].path)
    newest = readers.scan(path).version
    counts = [readers.scan(path, version=version, columns=["id"]).to_table().num_rows for version in range(newest + 1)]
    # Created, two files, indexed, rows deleted, columns changed, a file, and rows deleted again.
    assert counts[:3] == [0, 24, 36]
    assert counts[-1] == len(tables["changed"].rows)
    assert readers.scan(path, version=np.int64(newest)).version == newest
    assert readers.scan(path, where="l < 0 OR l >= 0 OR l IS NULL", version=2).to_table().num_rows == 36
    for version in (newest + 1, 2**63 - 1):
        with pytest.raises(VersionError, match=f"versions from 0 to {newest} are accepted"):
            readers.scan(path, version=version)


@pytest.mark.parametrize("folder", ["", "_delta_log", "_delta_log/folder"])
@pytest.mark.parametrize("version", [0, 2**63 - 1])
def test_a_version_without_a_log_is_that_of_no_table(tmp_path, folder, version):
    (tmp_path / "t" / folder).mkdir(parents=True)
    with pytest.raises(TableError, match="no version in _delta_log"):
        readers.scan(tmp_path / "t", version=version)


class PathOfBytes:
    def __fspath__(self):
        return b"/t"


def test_a_path_is_a_text_or_a_path(tables):
    path = tables["changed"].path
    assert readers.scan(Path(path)).location == str(path)
    for other in (None, "", " ", PathOfBytes(), bytes(path)):
        with pytest.raises(InvalidArgumentError, match=r"path = '.*' is not accepted: the path or URL of a table"):
            readers.scan(other)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"version": -1}, "version = -1"),
        ({"version": "1"}, "version = '1'"),
        ({"version": True}, "version = "),
        ({"version": 1.0}, "version = 1.0"),
        ({"version": 2**64}, "version = "),
        ({"columns": [1]}, "columns = "),
        ({"columns": [None]}, "columns = "),
        ({"columns": []}, "columns = "),
        ({"columns": 5}, "columns = '5'"),
        ({"columns": "id"}, "columns = 'id'"),
        ({"columns": ["id", "st", "ID"]}, "id is there twice"),
        ({"where": 5}, "where = 5"),
        ({"where": b"id = 1"}, "where = "),
        ({"where": "s = '\ud800'"}, "valid Unicode"),
        ({"where": "st = 1"}, "only IS NULL of st, which is a struct, an array or a map"),
        ({"storage_options": {"key": 1}}, "storage_options = "),
        ({"storage_options": "secret"}, "storage_options = 'str'"),
    ],
)
def test_arguments_are_checked(tables, arguments, named):
    with pytest.raises(InvalidArgumentError) as refused:
        readers.scan(str(tables["plain"].path), **arguments)
    assert named in str(refused.value)
    assert "secret" not in str(refused.value)


def test_errors_of_other_libraries_name_the_table(tables, tmp_path):
    path = tmp_path / "changed"
    shutil.copytree(tables["changed"].path, path)
    plan = readers.scan(str(path), where="id >= 0")
    for file in path.rglob("*.parquet"):
        if "_delta_log" not in file.parts:
            file.unlink()
    with pytest.raises(FileSystemError, match="changed"):
        plan.to_table()


@pytest.mark.parametrize("damage", ["byte", "missing"])
def test_damaged_deletion_vectors_are_not_ignored(tables, tmp_path, damage):
    path = tmp_path / "changed"
    shutil.copytree(tables["changed"].path, path)
    for file in path.rglob("deletion_vector_*.bin"):
        if damage == "missing":
            file.unlink()
        else:
            data = bytearray(file.read_bytes())
            data[-6] ^= 1
            file.write_bytes(data)
    with pytest.raises((FileSystemError, NotSupportedError)):
        readers.scan(str(path)).to_table()


def test_an_unreadable_log_does_not_bring_deleted_rows_back(tables, monkeypatch):
    monkeypatch.setattr("sql_ext.readers.delta_files.entries_of_files", lambda *_: {})
    with pytest.raises(FileSystemError, match="which rows of"):
        readers.scan(str(tables["changed"].path))
    plain = tables["plain"]
    assert readers.scan(str(plain.path), where="d = 0").to_table().num_rows == sum(r["d"] == 0 for r in plain.rows)


def test_dates_that_pandas_cannot_hold(tables):
    plan = readers.scan(str(tables["plain"].path), columns=["dt"])
    assert any(row["dt"] is not None and not -719_162 <= row["dt"] <= 2_932_896 for row in tables["plain"].rows)
    with pytest.raises(NotSupportedError, match="use to_table"):
        plan.to_pandas()


def test_special_numbers_by_hand(tables):
    rows = tables["plain"].rows
    path = str(tables["plain"].path)

    def count(where):
        return readers.scan(path, where=where).to_table().num_rows

    for column in ("d", "f", "st.d"):
        values = [row[column] for row in rows if row[column] is not None]
        assert count(f"{column} = 0.0") == count(f"{column} IN (-0.0)") == values.count(0.0)
        assert count(f"{column} = 'Infinity'") == count(f"{column} IN (1e9, 'inf')") == values.count(math.inf)
        assert count(f"{column} = 'NaN'") == sum(map(math.isnan, values))
        for value in {value for value in values if math.isfinite(value)}:
            assert count(f"{column} = {value!r}D") == values.count(value), (column, value)


def test_folders_with_encoded_characters_are_refused(tmp_path, monkeypatch):
    """The library deltalake would list the files of such a folder and open those of its decoded name."""
    deltalake.write_deltalake(tmp_path / "a b", pa.table({"id": [1]}))
    shutil.copytree(tmp_path / "a b", tmp_path / "a%20b")
    deltalake.write_deltalake(tmp_path / "100%", pa.table({"id": [2]}))
    (tmp_path / "link").symlink_to(tmp_path / "a%20b")
    monkeypatch.chdir(tmp_path)
    for location in (f"{tmp_path}/a%20b", "a%20b", f"{tmp_path}/link", f"file://{tmp_path}/a%2520b"):
        with pytest.raises(NotSupportedError, match="hexadecimal"):
            readers.scan(location)
    for location, rows in (("a b", [1]), (f"file://{tmp_path}/a%20b", [1]), ("100%", [2])):
        assert readers.scan(location).to_table()["id"].to_pylist() == rows, location
