"""Real clients of a server behind one small interface: another client is another class.

Each runs a statement as its users would, tells errors with what it knows of them, and cancels from outside.
"""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyspark
from server_process import Server, wait_for

SPARK_HOME = Path(pyspark.__file__).parent
PROGRAMS = Path(__file__).resolve().parent / "client_programs"
_STATEMENT_SECONDS = 240


class ClientError(Exception):
    """What a client shows of a failed statement.

    Attributes:
        text: as shown.
        sql_state: None where the client has no field for it.
    """

    def __init__(self, text: str, sql_state: str | None = None) -> None:
        super().__init__(text)
        self.text, self.sql_state = text, sql_state


class Client(ABC):
    """A connection; one statement at a time.

    Attributes:
        placeholder: for a parameter of a prepared statement; None where there are none.
        typed: whether values come as values, and not all as texts.
    """

    placeholder: str | None = "?"
    typed = True

    @abstractmethod
    def __init__(self, server: Server, token: str | None = None) -> None:
        """Connects, with the server's token when none is given."""

    @abstractmethod
    def begin(self, statement: str, *parameters: Any) -> None:
        """Sends a statement and does not wait."""

    @abstractmethod
    def result(self) -> list[tuple]:
        """Waits for what was begun, and fetches it."""

    @abstractmethod
    def cancel(self) -> None:
        """Asks the server to end what was begun."""

    @abstractmethod
    def close(self) -> None:
        """Leaves."""

    def run(self, statement: str, *parameters: Any) -> list[tuple]:
        self.begin(statement, *parameters)
        return self.result()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class PyHiveClient(Client):
    placeholder = "%s"

    def __init__(self, server: Server, token: str | None = None) -> None:
        from pyhive import hive

        given = server.token if token is None else token
        self.connection = hive.connect(
            host="127.0.0.1", port=server.jdbc_port, username="tester", password=given, auth="CUSTOM"
        )

    def run(self, statement: str, *parameters: Any) -> list[tuple]:
        from pyhive.exc import OperationalError

        cursor = self.connection.cursor()
        try:
            cursor.execute(statement, parameters or None)
            return cursor.fetchall() if cursor.description else []
        except OperationalError as error:
            status = error.args[0].status
            raise ClientError(status.errorMessage, status.sqlState) from error
        finally:
            cursor.close()

    def begin(self, statement: str, *parameters: Any) -> None:
        self._cursor = self.connection.cursor()
        self._cursor.execute(statement, parameters or None, async_=True)

    def result(self) -> list[tuple]:
        from TCLIService.ttypes import TOperationState as State

        running = (State.INITIALIZED_STATE, State.PENDING_STATE, State.RUNNING_STATE)
        wait_for(lambda: self._cursor.poll().operationState not in running, "an answer", _STATEMENT_SECONDS)
        status = self._cursor.poll()
        if status.operationState != State.FINISHED_STATE:
            raise ClientError(status.errorMessage or State._VALUES_TO_NAMES[status.operationState], status.sqlState)
        return self._cursor.fetchall() if self._cursor.description else []

    def cancel(self) -> None:
        self._cursor.cancel()

    def close(self) -> None:
        self.connection.close()


class ImpylaClient(Client):
    def __init__(self, server: Server, token: str | None = None) -> None:
        from impala.dbapi import connect

        given = server.token if token is None else token
        self.connection = connect(
            host="127.0.0.1", port=server.jdbc_port, user="tester", password=given, auth_mechanism="PLAIN"
        )
        # Each cursor is a session, and one that is forgotten speaks up whenever Python collects it.
        self._cursor = self.connection.cursor()

    def begin(self, statement: str, *parameters: Any) -> None:
        self._cursor.execute_async(statement, parameters or None)

    def result(self) -> list[tuple]:
        from impala.error import Error

        try:
            wait_for(lambda: not self._cursor.is_executing(), "an answer", _STATEMENT_SECONDS)
            if (state := self._cursor.status()) != "FINISHED_STATE":
                self._cursor._wait_to_finish()  # raises with the text, as execute does
                raise ClientError(state)
            return self._rows()
        except Error as error:
            raise ClientError(str(error)) from error
        finally:
            self._cursor.close_operation()

    def _rows(self) -> list[tuple]:
        try:
            return self._cursor.fetchall()
        except IndexError:  # it takes a statement without columns for one that has some
            return []

    def cancel(self) -> None:
        self._cursor.cancel_operation(reset_state=False)

    def close(self) -> None:
        self._cursor.close()
        self.connection.close()


class _LineProcess:
    """A process that is talked to in lines."""

    def __init__(self, command: Sequence[object], environment: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [str(part) for part in command],
            env={**os.environ, **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            # Where the tests run in the background of a shell, a process inherits that Ctrl-C is ignored.
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  # allocates nothing
        )
        self._lines: queue.Queue[str | None] = queue.Queue()
        self.seen: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def send(self, line: str) -> None:
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def line(self, seconds: float = _STATEMENT_SECONDS) -> str:
        """The next line; what came before is in ``seen``."""
        line = self._lines.get(timeout=seconds)
        if line is None:
            raise ClientError("ended: " + " | ".join(self.seen[-20:]))
        self.seen.append(line)
        return line

    def closed_on_error(self, first: Callable[[], object]) -> None:
        """Does the first thing; who is not let in leaves no process."""
        try:
            first()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        try:
            self.process.stdin.close()
            self.process.wait(60)
        except (OSError, subprocess.TimeoutExpired):
            pass
        finally:
            self.process.kill()
            self.process.wait()
            self._reader.join(10)
            self.process.stdout.close()


class ProgramClient(Client):
    """A program that takes requests and gives answers as JSON, one a line."""

    def __init__(self, command: Sequence[object], environment: dict[str, str]) -> None:
        self._process = _LineProcess(command, environment)
        self._process.closed_on_error(self._answer)  # it is connected

    def ask(self, **request: Any) -> Any:
        self._process.send(json.dumps(request))
        return self._answer()

    def _answer(self) -> Any:
        answer: dict[str, Any] = {}
        # pyspark's log is JSON too.
        while not {"rows", "error"} & answer.keys():
            line = self._process.line()
            answer = json.loads(line) if line.startswith("{") else {}
        if "error" in answer:
            raise ClientError(answer["error"], answer.get("sql_state"))
        return answer["rows"]

    def begin(self, statement: str, *parameters: Any, seconds: int = 0) -> None:
        request = {"do": "run", "sql": statement, "parameters": list(parameters), "seconds": seconds}
        self._process.send(json.dumps(request))

    def result(self) -> list[tuple]:
        return [tuple(row) for row in self._answer()]

    def cancel(self) -> None:
        self._process.send(json.dumps({"do": "cancel"}))

    def close(self) -> None:
        self._process.close()


class JdbcClient(ProgramClient):
    """The Hive JDBC driver, from Java."""

    def __init__(self, server: Server, token: str | None = None) -> None:
        url = f"jdbc:hive2://127.0.0.1:{server.jdbc_port}/default"
        environment = {"URL": url, "TOKEN": server.token if token is None else token}
        command = ["java", "-cp", SPARK_HOME / "jars" / "*", PROGRAMS / "JdbcProgram.java"]
        super().__init__(command, environment)


class ConnectClient(ProgramClient):
    """Spark Connect, from a Python process that has no driver."""

    def __init__(self, server: Server, token: str | None = None) -> None:
        given = server.token if token is None else token
        environment = {"URL": f"sc://localhost:{server.connect_port}/" + (f";token={given}" if given else "")}
        super().__init__([sys.executable, PROGRAMS / "connect_program.py"], environment)


class BeelineClient(Client):
    """Beeline, as a person types into it; the token comes from the server's file."""

    placeholder = None
    typed = False
    _count = 0

    def __init__(self, server: Server, token: str | None = None) -> None:
        password = server.token_file
        if token is not None:
            password = server.folder / "another-token"
            password.write_text(token)
        url = f"jdbc:hive2://127.0.0.1:{server.jdbc_port}/default"
        more = ["--outputformat=tsv2", "--silent=true", "--showHeader=false"]
        self._process = _LineProcess(
            [SPARK_HOME / "bin" / "beeline", "-u", url, "-n", "tester", "-w", password, *more],
            {"SPARK_HOME": str(SPARK_HOME)},
        )
        self._process.closed_on_error(lambda: self.run("SELECT 1"))

    def begin(self, statement: str, *parameters: Any) -> None:
        self._count += 1
        self._process.send(statement.replace("\n", " ") + ";")
        self._process.send(f"SELECT 'end', {self._count};")

    def result(self) -> list[tuple]:
        rows, error, typed = [], None, False
        while (line := self._process.line()) != f"end\t{self._count}":
            if typed or line.startswith(("0: jdbc:", "beeline>")):
                # What was typed, broken at the width of the terminal.
                typed = not line.endswith(";")
            elif "No current connection" in line:
                raise ClientError(error or line)
            elif line.startswith("Error: "):
                error = line
            elif line and not line.startswith("WARNING: "):
                rows.append(tuple(None if cell == "NULL" else cell for cell in line.split("\t")))
        if error is not None:
            state = error.rpartition("(state=")[2].partition(",")[0] if "(state=" in error else None
            raise ClientError(error, state)
        return rows

    def cancel(self) -> None:
        java = self._process.process.pid  # the script becomes it
        os.kill(java, signal.SIGINT)

    def close(self) -> None:
        self._process.close()


CLIENTS: dict[str, type[Client]] = {
    "beeline": BeelineClient,
    "pyhive": PyHiveClient,
    "impyla": ImpylaClient,
    "jdbc": JdbcClient,
    "connect": ConnectClient,
}
