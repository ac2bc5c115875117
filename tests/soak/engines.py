"""Readers that share no code with USE, in a process of their own: Delta for Spark, delta-rs and DuckDB.

The process answers one question per line of JSON: an engine, a version, and SQL with ``{t}`` for the table.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENGINES = ("delta", "delta-rs", "duckdb")


class EngineError(Exception):
    """An engine could not answer."""


class Engines:
    """The process; several threads may ask."""

    def __init__(self, table: Path, folder: Path) -> None:
        folder.mkdir()
        self._log = folder / "engines.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(table), str(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, "TMPDIR": str(folder)},
                text=True,
            )
        self._lock = threading.Lock()
        if self._answer() != {"ready": True}:
            raise EngineError("the other engines have not started")

    def digest(self, engine: str, version: int, sql: str) -> tuple[int, int]:
        """Returns two numbers of a version.

        Raises:
            EngineError: the engine failed.
        """
        with self._lock:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps({"engine": engine, "version": version, "sql": sql}) + "\n")
            self._process.stdin.flush()
            answer = self._answer()
        if "error" in answer:
            raise EngineError(f"{engine}: {answer['error']}")
        return tuple(answer["digest"])

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)

    def _answer(self) -> dict:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        raise EngineError("the process has ended: " + self._log.read_text(encoding="utf-8", errors="replace")[-2000:])


# ------------------------------------------------------------------------------------------------------ in the process


def _delta(table: Path, folder: Path) -> Callable[[int, str], tuple]:
    from plain_session import start_plain_session

    spark = start_plain_session(folder)
    return lambda version, sql: tuple(spark.sql(sql.format(t=f"delta.`{table}` VERSION AS OF {version}")).first())


def _delta_rs(table: Path, _: Path) -> Callable[[int, str], tuple]:
    import deltalake

    def read(version: int, sql: str) -> tuple:
        opened = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(str(table), version=version))
        found = opened.execute(sql.format(t="t")).read_all()
        return found["n"].to_pylist()[0], found["h"].to_pylist()[0]

    return read


def _duckdb(table: Path, _: Path) -> Callable[[int, str], tuple]:
    import duckdb
    import duckdb_extension_delta

    (extension,) = Path(next(iter(duckdb_extension_delta.__path__))).rglob("delta.duckdb_extension")
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    connection.execute(f"LOAD '{extension}'")

    def read(version: int, sql: str) -> tuple:
        scan = f"delta_scan('file://{table}', version => {version})"
        return tuple(int(number) for number in connection.execute(sql.format(t=scan)).fetchone())

    return read


def answer(table: Path, folder: Path) -> None:
    """Answers until standard input ends."""
    sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]
    engines = dict(zip(ENGINES, (make(table, folder) for make in (_delta, _delta_rs, _duckdb)), strict=True))
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            found = {"digest": engines[asked["engine"]](asked["version"], asked["sql"])}
        except Exception as error:  # noqa: BLE001 - the caller judges it
            found = {"error": f"{type(error).__name__}: {str(error)[:1500]}"}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    answer(*map(Path, sys.argv[1:3]))
