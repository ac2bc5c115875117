"""Two services share a budget, and the one that has begun a run is killed in its middle, again and again.

    make soak-fleet KILLS=10

Both look after the same tables. Before each kill, rows are appended to all of them. Ends with 0 when the rows are those
that were appended, no window of the budget was exceeded, and the remaining service has gone on within a minute.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]
os.environ["TZ"] = "UTC"
time.tzset()

DATABASE = "fleet"
ROWS = 4_000
PERIOD = "3 minutes"
SETTINGS = {
    "spark.qbeast.use.service.enabled": "true",
    "spark.qbeast.use.optimization-interval": "3s",
    "spark.qbeast.use.listener-interval": "1s",
}
PERIOD_MILLIS = 180_000


# -------------------------------------------------------------------------------------------- a process with a service


def serve(folder: Path, tables: int, budget: int, number: int, *, is_writer: bool) -> None:
    """Starts a session with a service, and answers commands from standard input."""
    from sessions import start_session
    from tables import checksum

    import sql_ext
    from procedures.service.service import Service

    spark = start_session(folder / f"process-{number}")
    for key, value in SETTINGS.items():
        spark.conf.set(key, value)
    spark.conf.set("spark.qbeast.use.fleet.location", str(folder / "ledger"))
    spark.sql(
        f"CREATE DATABASE {DATABASE} WITH DBPROPERTIES ('use.fleet.enabled' = 'true', "
        f"'use.fleet.maxBytes' = '{budget}', 'use.fleet.period' = '{PERIOD}', "
        "'use.optimization.quietPeriod' = '0', 'use.index.columns' = 'id')"
    )
    names = [f"{DATABASE}.t{n}" for n in range(tables)]
    for name in names:
        path = folder / name.rsplit(".", maxsplit=1)[-1]
        columns = "" if path.exists() else "(id BIGINT, x DOUBLE)"
        spark.sql(f"CREATE TABLE {name} {columns} USING delta LOCATION '{path}'")
    if not is_writer:
        Service(spark).start()
    print("ready", flush=True)
    for line in sys.stdin:
        if line.strip() == "append":
            for name in names:
                rows = spark.range(ROWS).selectExpr("id", "rand() AS x").coalesce(1)
                rows.write.format("delta").mode("append").saveAsTable(name)
        answer = {}
        for name in names:
            table = sql_ext.table(spark, name)
            files = table.inspect.index_files().selectExpr("count_if(revision_id = 0)", "sum(size)").first()
            answer[name] = {"unindexed": files[0], "bytes": files[1]}
            if line.strip() == "check":
                answer[name]["rows"] = [str(part) for part in checksum(spark.table(name).selectExpr("id"))]
        print(json.dumps(answer), flush=True)


class Process:
    """A process with a session, in a group of its own."""

    def __init__(self, folder: Path, arguments: argparse.Namespace, number: int, *, is_writer: bool = False) -> None:
        command = [sys.executable, __file__, "--folder", str(folder), "--process", str(number)]
        command += ["--tables", str(arguments.tables), "--budget", str(arguments.budget)]
        with (folder / f"process-{number}.log").open("w") as log:
            self.process = subprocess.Popen(
                [*command, *(["--writer"] if is_writer else [])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        self._line("ready")

    def ask(self, command: str) -> dict:
        self.send(command)
        return self.answer()

    def send(self, command: str) -> None:
        self.process.stdin.write(f"{command}\n")
        self.process.stdin.flush()

    def answer(self) -> dict:
        return json.loads(self._line("{"))

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def _line(self, start: str) -> str:
        while line := self.process.stdout.readline():
            if line.startswith(start):
                return line
        raise SystemExit("a process has ended by itself; its log is in the folder")


# ----------------------------------------------------------------------------------------------------------- the kills


def holder(folder: Path, table: int) -> str:
    """Who holds the lease on a table; '' if nobody does."""
    try:
        return json.loads((folder / f"t{table}" / "_use" / "lease.json").read_text())["holder"]
    except (OSError, ValueError):
        return ""


def spendings(folder: Path) -> list[list]:
    newest = max((folder / "ledger").glob("*.json"), key=lambda path: path.name)
    return json.loads(newest.read_text())["spent"]


def windows_above(spent: list[list], budget: int) -> list[int]:
    """Sums of windows above the budget; spending that was added up has a later time, which makes no window larger."""
    return [
        total
        for at, *_ in spent
        if (total := sum(size for time, _, size in spent if at - PERIOD_MILLIS < time <= at)) > budget
    ]


def committed_bytes(folder: Path, tables: int) -> int:
    """Bytes that commits of the services have removed."""
    total = 0
    for number in range(tables):
        sizes = {}
        for path in sorted((folder / f"t{number}" / "_delta_log").glob("*.json")):
            actions = [json.loads(line) for line in path.read_text().splitlines()]
            sizes |= {a["add"]["path"]: a["add"]["size"] for a in actions if "add" in a}
            if any(a["commitInfo"]["operation"] == "USE OPTIMIZE" for a in actions if "commitInfo" in a):
                total += sum(sizes[a["remove"]["path"]] for a in actions if "remove" in a)
    return total


def run(arguments: argparse.Namespace) -> int:
    folder = Path(tempfile.mkdtemp(prefix="use-fleet-"))
    writer = Process(folder, arguments, 0, is_writer=True)
    writer.ask("append")
    services = [Process(folder, arguments, number) for number in (1, 2)]
    seconds = []
    for kill in range(arguments.kills):
        writer.send("append")
        victim, table = None, ""
        deadline = time.time() + 300
        while victim is None and time.time() < deadline:
            for number in range(arguments.tables):
                pid = holder(folder, number).rpartition(":")[2]
                victim, table = next(
                    ((s, f"t{number}") for s in services if str(s.process.pid) == pid), (victim, table)
                )
        if victim is None:
            raise SystemExit("no service has begun a run")
        victim.kill()
        killed = time.time()
        writer.answer()
        while time.time() < killed + 400 and any(t["unindexed"] for t in writer.ask("look").values()):
            time.sleep(1)
        seconds.append(round(time.time() - killed, 1))
        print(f"kill {kill + 1}: {table} was under way; all is indexed {seconds[-1]} s later", flush=True)
        services = [*(s for s in services if s is not victim), Process(folder, arguments, 3 + kill)]
    answers = writer.ask("check")
    spent, committed = spendings(folder), committed_bytes(folder, arguments.tables)
    above = windows_above(spent, arguments.budget)
    kinds = {tuple(answer["rows"]) for answer in answers.values()}
    left = [name for name, answer in answers.items() if answer["unindexed"]]
    total = sum(size for *_, size in spent)
    print(f"{arguments.kills} kills; spent {total} bytes, of which {committed} were committed; windows above: {above}")
    print(f"rows of the tables: {kinds}; tables that are not indexed: {left}")
    for process in (writer, *services):
        process.kill()
    expected = (arguments.kills + 1) * ROWS
    is_good = len(kinds) == 1 and str(expected) in str(next(iter(kinds))) and not left and not above
    return 0 if is_good and committed <= total else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--tables", type=int, default=6)
    parser.add_argument("--budget", type=int, default=1_500_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--process", type=int)
    parser.add_argument("--writer", action="store_true")
    arguments = parser.parse_args()
    if arguments.process is None:
        return run(arguments)
    serve(arguments.folder, arguments.tables, arguments.budget, arguments.process, is_writer=arguments.writer)
    return 0


if __name__ == "__main__":
    sys.exit(main())
