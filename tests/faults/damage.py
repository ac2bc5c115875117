"""Files below a table that a bad disk has damaged: cut off, empty, or with a flipped bit."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from faults import oracle
from faults.judge import Tables, problem_after, problem_before, unclear
from faults.results import Outcome
from faults.worker_process import WorkerProcess

STATE, LOG = "damaged state", "damaged log"
TEMPLATE = "stateful"
OPERATIONS = (
    "two groups at once",
    "vacuum",
    "purge",
    "execute plan",
    "store plan",
    "protect",
    "consolidate log",
    "suspend",
    "drop index",
)
_DAMAGES = ("empty", "cut off", "flipped bit")
_OPERATIONS_PER_FILE = 3
# The documented exceptions: a protection that cannot be read stops deletions until use.unprotect has removed it, and a
# plan that cannot be read is made anew.
_ACCEPTED = ("USE_PROTECTION_UNREADABLE", "USE_PLAN_UNREADABLE")


@dataclass(frozen=True)
class DamageCase:
    """A damaged file, and the operation that meets it.

    Attributes:
        operation: its name.
        file: relative to the table.
        damage: what is wrong with it.
    """

    operation: str
    file: str
    damage: str

    @property
    def name(self) -> str:
        """The same each time, as long as the template stays."""
        return f"{self.operation} / {self.file} / {self.damage}"

    @property
    def kind(self) -> str:
        """The kind of the fault."""
        return LOG if self.file.startswith(oracle.LOG) else STATE


def cases_of(tables: Tables) -> Iterator[DamageCase]:
    """A case for each state file and damage with some operations, and the same for the newest files of the log."""
    path = tables.path_of(TEMPLATE)
    state = [f for f in sorted((path / "_use").rglob("*")) if f.is_file() and not f.name.startswith(".")]
    log = path / oracle.LOG
    newest = [sorted(log.glob(pattern))[-1:] for pattern in ("*.json", "*.crc", "*.checkpoint*.parquet")]
    files = [*state, *(file for found in newest for file in found), *log.glob("_last_checkpoint")]
    for file in files:
        for damage in _DAMAGES:
            chosen = random.Random(f"{file.parent.name} {damage}").sample(OPERATIONS, _OPERATIONS_PER_FILE)
            for operation in chosen:
                yield DamageCase(operation, str(file.relative_to(path)), damage)


def damaged(content: bytes, damage: str, *, is_log: bool) -> bytes:
    """The content of a file after a damage.

    Args:
        content: before it.
        damage: what goes wrong.
        is_log: whether the flipped bit is at the beginning: a log entry that is valid JSON with another content is one
            that nobody can recognize.
    """
    if damage == "empty":
        return b""
    if damage == "cut off":
        return content[: len(content) // 2]
    position = 0 if is_log else random.Random(len(content)).randrange(len(content))
    return content[:position] + bytes([content[position] ^ 0x40]) + content[position + 1 :]


def run(worker: WorkerProcess, tables: Tables, case: DamageCase) -> Outcome:
    """Damages a file, runs an operation, restores a log entry, and judges the table."""
    path = tables.copy_of(TEMPLATE)
    rows = tables.rows_of_template(TEMPLATE)
    file = path / case.file
    content = file.read_bytes()
    is_entry = case.kind == LOG and file.suffix in (".json", ".parquet")
    file.write_bytes(damaged(content, case.damage, is_log=case.kind == LOG))
    # The local file system of Hadoop would find the damage by its checksum, which an object store does not have.
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    answer = worker.ask("run", operation=case.operation, path=str(path))
    if is_entry:
        # Nothing else has what a log entry said: it comes from a backup.
        file.write_bytes(content)
    failed = unclear(answer) or problem_before(path, case.operation, rows)
    if failed is None:
        before = oracle.ids(path)
        recovered = worker.ask("recover", operation=case.operation, path=str(path), accepted=_ACCEPTED)
        failed = f"{recovered}" if recovered else problem_after(path, case.operation, rows, before, case.file)
    if failed is None:
        tables.remove(path)
    else:
        failed = f"{failed}; the operation had ended with {answer or 'success'}; table {path.name}"
    return Outcome(case.name, case.operation, case.kind, case.file, failed, answer.get("code", ""))
