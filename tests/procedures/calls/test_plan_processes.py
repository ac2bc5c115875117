"""Stored plans in several processes: one is killed in the middle of a group, and the other one does the rest."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tables import DeltaTable, checksum

import sql_ext
from catalog.clock import SYSTEM_CLOCK
from catalog.state.lease import LEASE_FILE, holder_of

ROOT = Path(__file__).resolve().parents[3]
SUPPORT = ROOT / "tests" / "support"

CHILD = """
    import sys, time
    from pathlib import Path

    sys.path.insert(0, {support!r})
    from sessions import start_session
    from staging import optimize
    from tables import DeltaTable
    from procedures.rewrite import group_rewrite

    def pause(step):
        if step == {step!r}:
            Path({marker!r}).touch()
            time.sleep(600)

    spark = start_session(Path({folder!r}))
    committed = group_rewrite.commit

    def commit(*arguments):
        version = committed(*arguments)
        pause("committed")
        return version

    group_rewrite.commit = commit
    optimize(DeltaTable(spark, {name!r}), lambda step: pause(step.value), plan={plan!r})
"""


def _expire(table, *files):
    """Makes leases and claims older than they can be, as if a minute had passed."""
    for file in files:
        path = table.path / "_use" / file
        (path.parent / f".{path.name}.crc").unlink(missing_ok=True)
        path.write_text(json.dumps({**json.loads(path.read_text()), "expires_at": 1}))


def _rows_of_versions(table, versions):
    """Checksums of versions as time travel reads them."""
    return {v: checksum(table.spark.sql(f"SELECT * FROM {table.name} VERSION AS OF {v}")) for v in versions}


@pytest.mark.slow
@pytest.mark.parametrize("step", ["read", "place", "write", "verify", "commit", "committed"])
def test_a_process_is_killed_in_the_middle_of_a_group(spark, tmp_path, step):
    path, marker, child = tmp_path / "t", tmp_path / "reached", tmp_path / "child.py"
    for first in range(0, 3000, 1000):
        for _ in range(2):
            spark.range(first, first + 100, 1, 1).write.format("delta").mode("append").save(str(path))
    table = DeltaTable(spark, f"delta.`{path}`")
    before, version = table.checksum(), table.version
    history = _rows_of_versions(table, range(version + 1))
    rows = sql_ext.call(spark, "plan", table=table.name, columns="id", max_file_bytes=3000, store=True).collect()
    plan_id = rows[0].plan_id
    values = {"support": str(SUPPORT), "step": step, "marker": str(marker), "folder": str(tmp_path)}
    child.write_text(textwrap.dedent(CHILD).format(**values, name=table.name, plan=plan_id))
    with (tmp_path / "child.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, str(child)], cwd=ROOT, stdout=log, stderr=log, start_new_session=True
        )
    try:
        while not marker.exists():
            assert process.poll() is None, (tmp_path / "child.log").read_text()[-2000:]
            try:
                process.wait(0.2)
            except subprocess.TimeoutExpired:
                continue
        # Both have a share of the plan, and nobody else may optimize the table.
        assert table.optimize(strategy="StepConsolidation")[0].reason == "LEASE_HELD"
        report = table.optimize(plan=plan_id)
        assert [(r.state, r.reason) for r in report] == [
            ("committed", "PLAN_GROUP_2_OVERLAP"),
            ("committed", "PLAN_GROUP_3_OVERLAP"),
            ("skipped", "PLAN_GROUP_RUNNING"),
        ], step
    finally:
        # Its JVM dies at the same moment, and can clean nothing up.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert table.checksum() == before, step
    (run,) = table.managed.list_state(f"plans/{plan_id}/runs")
    _expire(table, LEASE_FILE, f"plans/{plan_id}/runs/{run}", f"plans/{plan_id}/groups/1.json")
    states = [r.state for r in table.sql("SELECT state FROM {t}.plans ORDER BY group_id")]
    assert states == ["planned", "done", "done"], step
    (row,) = table.optimize(plan=plan_id, groups=[1])
    # A commit that the killed process has made is found in the log.
    expected = ("skipped", "PLAN_GROUP_DONE") if step == "committed" else ("committed", "PLAN_GROUP_1_OVERLAP")
    assert (row.state, row.reason) == expected, step
    assert table.checksum() == before, step
    assert {r.state for r in table.sql("SELECT state FROM {t}.plans")} == {"done"}, step
    assert (table.version, len(table.files)) == (version + 3, 3), step
    # Every version reads as before, and nobody holds the table any more.
    after = dict.fromkeys(range(version, version + 4), before)
    assert _rows_of_versions(table, range(version + 4)) == {**history, **after}, step
    # An expired lease holds nothing; a run that finds nothing to rewrite takes none, and leaves it.
    assert holder_of(table.managed, SYSTEM_CLOCK.now()) is None
    assert table.managed.list_state(f"plans/{plan_id}/runs") == [run], step
    assert table.optimize(strategy="StepConsolidation", dry_run=True)[0].reason != "LEASE_HELD", step
    # A vacuum deletes what the killed process has written, and the plan with the file of its run.
    sql_ext.call(spark, "vacuum", table=table.name, retention_hours=0.0, force=True)
    assert table.on_disk() == table.paths, step
    assert table.managed.list_state("plans") == []
    assert table.checksum() == before, step


@pytest.mark.slow
def test_two_processes_execute_a_plan_at_once(tmp_path):
    command = [sys.executable, str(ROOT / "examples" / "plan_in_processes.py"), "--folder", str(tmp_path / "demo")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "every group is done, and the rows are the same" in done.stdout
