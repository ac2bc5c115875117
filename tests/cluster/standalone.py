"""A standalone cluster of Spark on this machine: a master and workers, each a process of its own."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pyspark

SPARK_HOME = Path(pyspark.__file__).parent
ROOT = Path(__file__).resolve().parents[2]
DEADLINE_SECONDS = 120


def environment() -> dict[str, str]:
    """What every process of a test gets: pip's Spark, this checkout, the loopback."""
    return {
        **os.environ,
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
    }


def wait_for(condition, what: str, seconds: float = DEADLINE_SECONDS) -> None:
    """Waits until a condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen in {seconds} s"
        time.sleep(0.1)


class Processes:
    """Processes in groups of their own, with their output in files; all are ended at the end, also on failure."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._started: list[subprocess.Popen] = []

    def start(self, name: str, *command: str, cwd: Path | None = None) -> subprocess.Popen:
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                command,
                cwd=cwd or self.folder,
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._started.append(process)
        return process

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")

    def kill(self, process: subprocess.Popen) -> None:
        """Ends a process and what it started, at once."""
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait(DEADLINE_SECONDS)

    def __enter__(self) -> "Processes":
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._started):
            self.kill(process)


class StandaloneCluster:
    """A master and workers of one core each."""

    def __init__(self, processes: Processes, workers: int = 2, memory: str = "1g") -> None:
        spark_class = str(SPARK_HOME / "bin" / "spark-class")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"spark://127.0.0.1:{port}"
        here = ("--host", "127.0.0.1", "--webui-port", "0")
        package = "org.apache.spark.deploy"
        processes.start("master", spark_class, f"{package}.master.Master", *here, "--port", str(port))
        wait_for(lambda: "elected leader" in processes.log("master"), "the master's start")
        self.workers = {
            name: processes.start(
                name,
                *(spark_class, f"{package}.worker.Worker", *here, "--cores", "1", "--memory", memory),
                *("--work-dir", str(processes.folder / name), self.url),
            )
            for name in (f"worker{number + 1}" for number in range(workers))
        }
        for name in self.workers:
            wait_for(lambda name=name: "Successfully registered" in processes.log(name), f"the start of {name}")
