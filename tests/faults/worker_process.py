"""A worker as its parent sees it: a process with a JVM of its own, in a group that is killed as a whole."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

WORKER = Path(__file__).with_name("worker.py")
_MOST_SECONDS = 1800


class WorkerEndedError(Exception):
    """The process has ended by itself, or has not answered in time."""


class WorkerProcess:
    """A worker.

    Args:
        folder: of all workers; each has a folder of its own below it.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder / f"worker-{uuid.uuid4().hex[:8]}"
        self._log = self.folder.with_suffix(".log")
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-u", str(WORKER), str(self.folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        self._is_ready = False

    def send(self, do: str, **arguments: Any) -> None:
        """Sends a command; ``answer`` waits for its end."""
        if not self._is_ready:
            self.answer()
            self._is_ready = True
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **arguments}).encode() + b"\n")
        self._process.stdin.flush()

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Sends a command, and returns its answer.

        Raises:
            WorkerEndedError: there is none within half an hour.
        """
        self.send(do, **arguments)
        return self.answer()

    def answer(self) -> dict[str, Any]:
        """Waits for the answer to the last command; see ``ask``."""
        assert self._process.stdout is not None
        if select.select([self._process.stdout], [], [], _MOST_SECONDS)[0]:
            line = self._process.stdout.readline()
            if line:
                answer: dict[str, Any] = json.loads(line)
                return answer
        raise WorkerEndedError(self._log.read_text(errors="replace")[-3000:])

    def notes(self) -> list[str]:
        """What the worker has noted in races so far."""
        file = self.folder / "notes"
        return file.read_text().splitlines() if file.exists() else []

    @property
    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def kill(self) -> None:
        """Kills Python and its JVM at the same moment; those that have ended stay ended."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
