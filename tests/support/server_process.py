"""`use-spark thrift` as a process of its own, as users start it."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Small tables on a small machine: what makes Spark quick on them.
SMALL = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
}
_START_SECONDS = 240


def wait_for(condition: Callable[[], object], what: str, seconds: float = 120) -> object:
    """The first true value of the condition."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.1)
    return found


class ServerProcess:
    """A server that was started with these arguments; it may still be starting.

    Args:
        log: where its output goes.
        *arguments: of the command.
        conf: settings of Spark beside those for small tables.
        environment: further variables.
    """

    def __init__(
        self,
        log: Path,
        *arguments: object,
        conf: dict[str, str] | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.log = log
        settings = [f"--conf={key}={value}" for key, value in {**SMALL, **(conf or {})}.items()]
        variables = {key: value for key, value in os.environ.items() if key not in ("SPARK_LOCAL_IP", "PYTHONSTARTUP")}
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "sql_ext", "thrift", *map(str, arguments), *settings],
                cwd=log.parent,
                env={**variables, "PYTHONPATH": str(ROOT), **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            )

    @property
    def output(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    @property
    def said(self) -> list[str]:
        """The lines for people."""
        return [line.removeprefix("use-spark: ") for line in self.output.splitlines() if line.startswith("use-spark: ")]

    def wait_until_ready(self) -> None:
        def ready_or_ended() -> bool:
            return "ready; Ctrl-C stops it" in self.said or self.process.poll() is not None

        wait_for(ready_or_ended, "the server says that it is ready", _START_SECONDS)
        assert self.process.poll() is None, self.output

    def _port(self, pattern: str) -> int:
        found = re.search(pattern, "\n".join(self.said))
        assert found, self.output
        return int(found[1])

    @property
    def jdbc_port(self) -> int:
        return self._port(r"JDBC: jdbc:hive2://\S+:(\d+)/default")

    @property
    def connect_port(self) -> int:
        return self._port(r"Spark Connect: sc://\S+:(\d+)")

    def ask_to_end(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def wait(self, seconds: float = 180) -> int:
        return self.process.wait(seconds)

    def stop(self) -> int:
        if self.process.poll() is None:
            self.ask_to_end()
        try:
            return self.wait()
        finally:
            # The JVM ends with its parent.
            self.process.kill()
            self.process.wait()


class Server(ServerProcess):
    """A server on a warehouse and free ports, which lets in who has its token.

    Args:
        folder: of the warehouse, the token and the log.
        *arguments: further ones.
        conf: further settings of Spark.
    """

    def __init__(self, folder: Path, *arguments: object, conf: dict[str, str] | None = None) -> None:
        self.folder = folder
        self.warehouse = folder / "warehouse"
        self.token_file = folder / "secrets" / "token"
        where = ("--warehouse", self.warehouse, "--token-file", self.token_file)
        super().__init__(folder / "server.log", *where, "--port=0", "--connect-port=0", *arguments, conf=conf)

    @property
    def token(self) -> str:
        return self.token_file.read_text(encoding="ascii").strip()
