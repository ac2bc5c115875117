"""A process that is killed while it optimizes leaves a table that reads the same and can be optimized."""

import random
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from placement import check_placement
from tables import DeltaTable, numbers

SUPPORT = Path(__file__).resolve().parents[1] / "support"

CHILD = """
    import sys, time
    from pathlib import Path

    sys.path.insert(0, {support!r})
    from sessions import start_session
    from procedures.declaration import Call
    from procedures.engine import make_plan
    from procedures.optimize import OPTIMIZE
    from procedures.optimize_settings import OptimizeSettings
    from procedures.rewrite.group_rewrite import RewriteContext, rewrite
    from catalog.tables import ManagedTable

    def observe(step):
        if step == {step!r}:
            Path({marker!r}).touch()
            time.sleep(600)

    spark = start_session(Path({folder!r}))
    table = ManagedTable.find(spark, {path!r})
    arguments = {{p.name: None if p.required else p.default for p in OPTIMIZE.parameters}}
    plan = make_plan(table, OptimizeSettings.of({{**arguments, "table": {path!r}}}))
    rewrite(table, plan.groups[0], RewriteContext("call", {{}}, observe))
"""


@pytest.mark.slow
def test_killed_at_a_step(spark, tmp_path):
    step = random.choice(["write", "verify", "commit"])
    path, marker, child = tmp_path / "t", tmp_path / "reached", tmp_path / "child.py"
    numbers(spark, 500).write.format("delta").save(str(path))
    table = DeltaTable(spark, f"delta.`{path}`")
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.columns'='x,y', 'use.index.cubeSize'='100')")
    before, version = table.checksum(), table.version
    wanted = {"support": str(SUPPORT), "step": step, "marker": str(marker), "folder": str(tmp_path), "path": str(path)}
    child.write_text(textwrap.dedent(CHILD).format(**wanted))
    process = subprocess.Popen(
        [sys.executable, str(child)], cwd=SUPPORT.parents[1], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        while not marker.exists():
            assert process.poll() is None, "the child ended before it was killed"
            try:
                process.wait(0.2)
            except subprocess.TimeoutExpired:
                continue
    finally:
        process.kill()
        process.wait()
    assert table.version == version, step
    assert table.checksum() == before, step
    assert [r.state for r in table.optimize()] == ["committed"], step
    assert table.checksum() == before
    assert check_placement(table) == 500
