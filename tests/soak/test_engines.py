"""The engines of a soak read the version that is asked for, and compute the digest as Python does."""

import sys
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from soak import engines
from soak.history import Columns, Values, x_of

MAKERS = {"delta-rs": engines._delta_rs, "duckdb": engines._duckdb}


@pytest.mark.parametrize("name", MAKERS)
def test_a_digest_is_that_of_the_rows(name, tmp_path):
    rows = {n: Values(x_of(n), n % 1000, None if n % 3 else n % 100) for n in range(19_999_000, 19_999_200)}
    table = {
        "id": pa.array(list(rows), pa.int64()),
        "x": pa.array([row.x for row in rows.values()], pa.int32()),
        "z": pa.array([row.y for row in rows.values()], pa.int32()),
        "c1": pa.array([row.extra for row in rows.values()], pa.int32()),
    }
    data, columns = pa.table(table), Columns("z", "c1")
    deltalake.write_deltalake(tmp_path / "t", data)
    deltalake.write_deltalake(tmp_path / "t", data, mode="append")
    read = MAKERS[name](tmp_path / "t", tmp_path)
    sql = f"SELECT {columns.digest_sql()} FROM {{t}} WHERE "
    total = sum(row.number(number) for number, row in rows.items())
    assert read(0, sql + "true") == (200, total)
    assert read(1, sql + "true") == (400, 2 * total)
    inside = [number for number, row in rows.items() if row.x < 300_000 and row.y >= 100]
    digest = len(inside), sum(rows[number].number(number) for number in inside)
    assert read(0, sql + "x < 300000 AND z >= 100") == digest
    assert read(0, sql + "x < 0") == (0, 0)
    without = f"SELECT {Columns('z').digest_sql()} FROM {{t}} WHERE true"
    assert read(0, without)[1] == sum(Values(row.x, row.y).number(number) for number, row in rows.items())
