"""A process that is killed while it optimizes leaves a table that reads the same and can be optimized."""

import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from ledger import COLUMNS, Ledger, Writer, differences
from placement import check_placement
from tables import DeltaTable, create, numbers

import sql_ext
from catalog.clock import SystemClock

SUPPORT = Path(__file__).resolve().parents[2] / "support"

CHILD = """
    import sys, time
    from pathlib import Path

    sys.path.insert(0, {support!r})
    from sessions import start_session
    from procedures.declare.declaration import Call
    from procedures.loop.interfaces import PlanRequest
    from procedures.loop.planner import TablePlanner
    from procedures.calls.optimize import OPTIMIZE
    from procedures.loop.optimize_settings import OptimizeSettings
    from procedures.rewrite.group_rewrite import rewrite
    from procedures.rewrite.results import RewriteContext
    from catalog.table.managed_table import ManagedTable

    def observe(step):
        if step.value == {step!r}:
            Path({marker!r}).touch()
            time.sleep(600)

    spark = start_session(Path({folder!r}))
    table = ManagedTable.find(spark, {path!r})
    arguments = {{p.name: None if p.required else p.default for p in OPTIMIZE.parameters}}
    settings = OptimizeSettings.of({{**arguments, "table": {path!r}, **{more!r}}})
    plan = TablePlanner(table, settings).plan(PlanRequest())
    rewrite(table, plan.groups[0], RewriteContext("call", {{}}, observe))
"""


def kill_at(step, table, folder, **more):
    """Rewrites the first group of a plan in another process, and kills the process and its JVM before a step."""
    marker, child = folder / "reached", folder / "child.py"
    wanted = {"support": str(SUPPORT), "step": step, "marker": str(marker), "folder": str(folder), "more": more}
    child.write_text(textwrap.dedent(CHILD).format(**wanted, path=str(table.path)))
    process = subprocess.Popen(
        [sys.executable, str(child)],
        cwd=SUPPORT.parents[1],
        env={**os.environ, "PYTHONPATH": str(SUPPORT.parents[1])},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        while not marker.exists():
            assert process.poll() is None, "the child ended before it was killed"
            try:
                process.wait(0.2)
            except subprocess.TimeoutExpired:
                continue
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.slow
def test_killed_at_a_step(spark, tmp_path):
    step = random.choice(["revision", "write", "verify", "commit"])
    path = tmp_path / "t"
    numbers(spark, 500).write.format("delta").save(str(path))
    table = DeltaTable(spark, f"delta.`{path}`")
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.columns'='x,y', 'use.index.cubeSize'='100')")
    before, version = table.checksum(), table.version
    kill_at(step, table, tmp_path)
    # From its own commit on, the revision is there, and has no files.
    assert table.version == version + (step != "revision"), step
    assert set(table.revisions) == (set() if step == "revision" else {0, 1}), step
    assert table.checksum() == before, step
    assert [r.state for r in table.optimize()] == ["committed"], step
    assert table.checksum() == before
    assert check_placement(table) == 500


@pytest.mark.slow
@pytest.mark.parametrize("step", ["read", "place", "write", "verify", "commit"])
@pytest.mark.parametrize("strategy", ["SizeTieredClustering", "DeleteCompaction"])
def test_killed_at_a_step_of_the_life_cycle(spark, tmp_path, strategy, step):
    properties = {"delta.enableDeletionVectors": "true"}
    table = create(spark, f"delta.`{tmp_path / 't'}`", "id BIGINT, p INT", properties=properties)
    for number in range(4):
        rows = spark.range(number * 50, number * 50 + 50).selectExpr("id", "CAST(id % 2 AS INT) p")
        rows.coalesce(1).write.format("delta").mode("append").save(str(table.path))
    if strategy == "DeleteCompaction":
        table.sql("DELETE FROM {t} WHERE id % 3 = 0")
    before, version, files = table.checksum(), table.version, table.paths
    kill_at(step, table, tmp_path, strategy=strategy)
    assert (table.version, table.paths, table.checksum()) == (version, files, before)
    assert table.paths <= table.on_disk()
    # A file that was written and not committed is no file of the table, and the next run does what was left.
    written = {f for f in table.on_disk() - files if "deletion_vector" not in f}
    assert bool(written) == (step in ("verify", "commit"))
    assert [row.state for row in table.optimize(strategy=strategy)] == ["committed"]
    assert [row.reason for row in table.optimize(strategy=strategy)] == ["NOTHING_TO_DO"]
    assert table.checksum() == before
    past = spark.read.format("delta").option("versionAsOf", version).load(str(table.path))
    assert past.count() == table.data.count()
    sql_ext.call(spark, "vacuum", table=table.name, retention_hours=0.0, force=True)
    assert table.on_disk() == table.paths
    assert table.checksum() == before


ENDLESS = """
    import os, sys, time
    from pathlib import Path

    sys.path.insert(0, {support!r})
    from sessions import start_session
    from catalog.state import lease
    from catalog.errors import UseError
    from catalog.table.managed_table import ManagedTable
    from procedures.loop.table_optimizer import optimize
    from procedures.calls.optimize import OPTIMIZE
    from procedures.loop.optimize_settings import OptimizeSettings
    from procedures.declare.runs import Run

    lease.LEASE_MILLIS = 1_500
    folder = Path({folder!r})
    folder.mkdir()

    def note(name, text):
        with open(folder / name, "a") as file:
            file.write(text + "\\n")

    spark = start_session(folder / "spark")
    note("ready", "")
    while not (folder / "go").exists():
        time.sleep(0.05)
    arguments = {{p.name: None if p.required else p.default for p in OPTIMIZE.parameters}}
    wanted = {{"table": {path!r}, "parallelism": 2, "options": {{"batch_bytes": "1"}}, "bytes_per_iter": 20_000}}
    while True:
        table = ManagedTable.find(spark, {path!r})
        try:
            settings = OptimizeSettings.of({{**arguments, **wanted}})
            rows = optimize(table, settings, Run.of(table, "call", {{}}), lambda step: note("steps", step.value))
            note("rows", repr([(r.state, r.reason) for r in rows]))
        except BaseException as error:
            note("errors", f"{{type(error).__name__}}: {{error}}")
            raise
"""


KINDS = ("append", "append", "delete")


class Child:
    """A process, with a JVM of its own, that optimizes a table for ever once it is let go."""

    def __init__(self, folder: Path, path: Path) -> None:
        self.folder = folder
        script = folder.with_suffix(".py")
        wanted = {"support": str(SUPPORT), "folder": str(folder), "path": str(path)}
        script.write_text(textwrap.dedent(ENDLESS).format(**wanted))
        # A group of its own, so that its JVM dies at the same moment.
        with folder.with_suffix(".log").open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(script)],
                cwd=SUPPORT.parents[1],
                env={**os.environ, "PYTHONPATH": str(SUPPORT.parents[1])},
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def lines(self, name: str) -> list[str]:
        file = self.folder / name
        return file.read_text().splitlines() if file.exists() else []

    def wait_for(self, name: str, count: int) -> None:
        """Waits until a file of the child has so many lines."""
        deadline = time.monotonic() + 600
        while len(self.lines(name)) < count:
            assert self.process.poll() is None, self.folder.with_suffix(".log").read_text()[-3000:]
            assert time.monotonic() < deadline, f"no {name} in time"
            time.sleep(0.02)

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.mark.slow
def test_killed_at_random_moments_while_others_write(spark, tmp_path, monkeypatch):
    """``USE_KILLS`` says how often, ``USE_KILLS_SEED`` repeats the same choices."""
    kills = int(os.environ.get("USE_KILLS", "5"))
    seed = int(os.environ.get("USE_KILLS_SEED", random.randrange(1_000_000)))
    print(f"USE_KILLS_SEED={seed}")
    chance, path = random.Random(seed), tmp_path / "t"
    table = create(spark, f"delta.`{path}`", COLUMNS, index="x,y", cube_size=50)
    ledger, ended, failures = Ledger(path), threading.Event(), []
    writers = [Writer(spark.newSession(), ledger, n, random.Random(seed + n)) for n in (1, 2)]
    for writer in writers:
        writer.step(("append",))

    threads = [threading.Thread(target=writer.work, args=(ended, KINDS, failures)) for writer in writers]
    children = [Child(tmp_path / "c0", path)]
    for thread in threads:
        thread.start()
    moments = []
    try:
        for number in range(1, kills + 1):
            child = children[-1]
            child.wait_for("ready", 1)
            (child.folder / "go").touch()
            if number < kills:
                # It starts while this one works: most of the time would go into starting.
                children.append(Child(tmp_path / f"c{number}", path))
            child.wait_for("steps", chance.randint(1, 18))
            time.sleep(chance.random())
            child.kill()
            moments.append((child.lines("steps") or ["none"])[-1])
            assert child.lines("errors") == []
    finally:
        ended.set()
        for child in children:
            if child.process.poll() is None:
                child.kill()
        for thread in threads:
            thread.join()
    print("killed at", Counter(moments), [writer.tally for writer in writers])
    assert failures == []
    # The lease of the one killed last has expired by then.
    real = SystemClock.now
    monkeypatch.setattr(SystemClock, "now", lambda clock: real(clock) + 60_000)
    assert ledger.vanished(table.version) == set()
    expected = ledger.rows_at(table.version)
    assert differences(spark, table.data, expected) == []
    assert {row.state for row in table.optimize()} <= {"committed", "skipped"}
    assert {row.state for row in table.optimize()} == {"skipped"}
    assert differences(spark, table.data, expected) == []
    assert check_placement(table) == len(expected)
    assert table.paths <= table.on_disk()
    problems = sql_ext.call(spark, "check", table=table.name, deep=True).where("severity = 'error'").collect()
    assert problems == [], (table.paths, table.on_disk())
    sql_ext.call(spark, "vacuum", table=table.name, retention_hours=0.0, force=True)
    assert table.on_disk() == table.paths
    assert differences(spark, table.data, expected) == []
