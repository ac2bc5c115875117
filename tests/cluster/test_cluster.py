"""The main job on a standalone cluster with two workers and on Spark's local-cluster; one loses an executor."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest
from standalone import ROOT, SPARK_HOME, StandaloneCluster, wait_for

# Slow too, so that the quick tests stay quick.
pytestmark = [pytest.mark.cluster, pytest.mark.slow]

JOB = str(ROOT / "examples" / "cluster_job.py")
LOCAL_CLUSTER = "local-cluster[2,1,1024]"
JOB_SECONDS = 1500
# Appends are versions 1 to 12, the properties 13.
FIRST_REWRITE = 14


def small(tmp_path):
    """Settings for a small machine, with everything written below the test's folder."""
    return [
        part
        for setting in (
            "spark.executor.memory=1g",
            "spark.driver.memory=1g",
            "spark.driver.host=127.0.0.1",
            "spark.ui.enabled=false",
            "spark.ui.showConsoleProgress=false",
            "spark.sql.shuffle.partitions=2",
            "spark.databricks.delta.snapshotPartitions=2",
            f"spark.sql.warehouse.dir={tmp_path}/warehouse",
            f"spark.local.dir={tmp_path}/local",
        )
        for part in ("--conf", setting)
    ]


def arguments(tmp_path, *more):
    return ["--folder", str(tmp_path / "data"), "--report", str(tmp_path / "report.json"), *more]


def submit(processes, tmp_path, master):
    """As the documentation says: settings from ``use-spark conf``, everything else from spark-submit."""
    conf = processes.start("conf", sys.executable, "-m", "sql_ext", "conf")
    assert conf.wait(300) == 0, processes.log("conf")
    settings = [line for line in processes.log("conf").splitlines() if line.startswith("spark.")]
    (tmp_path / "use.conf").write_text("\n".join(settings) + "\n", encoding="utf-8")
    command = (str(SPARK_HOME / "bin" / "spark-submit"), "--master", master, "--properties-file", "use.conf")
    return processes.start("job", *command, *small(tmp_path), JOB, *arguments(tmp_path))


def drive(processes, tmp_path, master, *more):
    """A driver in Python that configures its own session."""
    return processes.start(
        "job", sys.executable, JOB, "--master", master, *small(tmp_path), *arguments(tmp_path, *more)
    )


def finish(processes, tmp_path, job):
    """What the job saw; executors other than the driver's process must have worked."""
    assert job.wait(JOB_SECONDS) == 0, processes.log("job")[-5000:]
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert report["executors"].pop("driver", 0) == 0
    assert len([name for name, tasks in report["executors"].items() if tasks]) >= 2, report
    assert report["rows"][0] == str(12 * 2000)
    return report


def rewrites(tmp_path):
    log = tmp_path / "data" / "events" / "_delta_log"
    return len([f for f in log.glob("*.json") if f.stem.isdigit() and int(f.stem) >= FIRST_REWRITE])


def wait_for_rewrites(processes, tmp_path, job, count):
    """Until so many groups are committed, and the job goes on."""

    def committed():
        assert job.poll() is None, processes.log("job")[-5000:]
        return rewrites(tmp_path) >= count

    wait_for(committed, f"commit {count} of optimize", JOB_SECONDS)


def executors_below(pid):
    """Process ids of executors that a process and its children have started."""
    parents, found = {}, []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                stat = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
                command = (folder / "cmdline").read_bytes()
            except OSError:  # it ended meanwhile
                continue
            parents[int(folder.name)] = int(stat[1])
            if b"CoarseGrainedExecutorBackend" in command:
                found.append(int(folder.name))

    def below(child):
        return child == pid or (child in parents and below(parents[child]))

    return [child for child in found if below(child)]


@pytest.mark.parametrize("kind", ["standalone", "local-cluster"])
def test_submitted(processes, tmp_path, kind):
    master = StandaloneCluster(processes).url if kind == "standalone" else LOCAL_CLUSTER
    report = finish(processes, tmp_path, submit(processes, tmp_path, master))
    assert report["groups"][0] == "committed"


def test_a_worker_dies_while_a_driver_optimizes(processes, tmp_path):
    """Its executor, its shuffle files and its tasks go with it; no row does."""
    cluster = StandaloneCluster(processes)
    job = drive(processes, tmp_path, cluster.url, "--batch-bytes", "1")
    wait_for_rewrites(processes, tmp_path, job, 2)
    (executor,) = executors_below(cluster.workers["worker1"].pid)
    processes.kill(cluster.workers["worker1"])
    assert not Path(f"/proc/{executor}").exists() or not executors_below(cluster.workers["worker1"].pid)
    killed_at = rewrites(tmp_path)
    assert killed_at < 12, "the optimization was over before the worker died"
    report = finish(processes, tmp_path, job)
    assert report["groups"].count("committed") > killed_at


def test_an_executor_dies_while_a_driver_optimizes(processes, tmp_path):
    """Spark starts another in its place."""
    job = drive(processes, tmp_path, LOCAL_CLUSTER, "--batch-bytes", "1")
    wait_for_rewrites(processes, tmp_path, job, 2)
    victim, *others = executors_below(job.pid)
    assert others
    os.kill(victim, signal.SIGKILL)
    killed_at = rewrites(tmp_path)
    assert killed_at < 12, "the optimization was over before the executor died"
    report = finish(processes, tmp_path, job)
    assert report["groups"].count("committed") > killed_at
    assert len(report["executors"]) == 3
