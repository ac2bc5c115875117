"""The outcomes of cases, kept in a file so that a second call goes on; and their summary."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Outcome:
    """The outcome of a case.

    Attributes:
        case: unique name.
        operation: that was disturbed.
        fault: kind of the fault.
        where: the point at which it struck, or the phase in which the process was; '' if it did not strike.
        failed: which promise was broken; None if none was.
        error: code of the error with which the operation ended; '' if it succeeded or was killed.
    """

    case: str
    operation: str
    fault: str
    where: str
    failed: str | None = None
    error: str = ""


class Results:
    """The outcomes so far.

    Args:
        file: has a line per outcome; several shards may write to it at the same time.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        file.parent.mkdir(parents=True, exist_ok=True)
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        self.outcomes = [Outcome(**json.loads(line)) for line in lines]
        self._done = {outcome.case for outcome in self.outcomes}

    def has(self, case: str) -> bool:
        """Whether a case is done."""
        return case in self._done

    def add(self, outcome: Outcome) -> None:
        """Keeps an outcome, and prints a failure."""
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(outcome)) + "\n")
        self.outcomes.append(outcome)
        self._done.add(outcome.case)
        if outcome.failed is not None:
            print(f"FAILED {outcome.case}: {outcome.failed}", flush=True)

    @property
    def failed(self) -> int:
        """How many cases broke a promise."""
        return sum(outcome.failed is not None for outcome in self.outcomes)


def report(results: Results) -> str:
    """What was done and what failed, for people."""
    outcomes = results.outcomes
    missed = [o for o in outcomes if not o.where and o.failed is None]
    lines = [
        "",
        summary(outcomes),
        "",
        f"{len(outcomes)} cases, {results.failed} failed; in {len(missed)} of them, the fault did not strike",
    ]
    killed = Counter(o.where for o in outcomes if o.fault == "kill")
    if killed:
        lines.append("last point before a kill: " + _counts(killed))
    lines.append("errors of the operations: " + _counts(Counter(o.error or "none" for o in outcomes)))
    lines += [f"FAILED {o.case}: {o.failed[:300]}" for o in outcomes if o.failed is not None]
    return "\n".join(lines)


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counter.most_common())


def summary(outcomes: Sequence[Outcome]) -> str:
    """A line per operation and a column per fault: cases, and how many of them failed."""
    faults = list(dict.fromkeys(outcome.fault for outcome in outcomes))
    operations = list(dict.fromkeys(outcome.operation for outcome in outcomes))
    rows = [["", *faults, "all"]]
    for operation in operations:
        of_operation = [outcome for outcome in outcomes if outcome.operation == operation]
        rows.append([operation, *_cells(of_operation, faults)])
    rows.append(["all", *_cells(outcomes, faults)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) if not column else cell.rjust(width) for column, (cell, width) in enumerate(cells))
        for cells in (list(zip(row, widths, strict=True)) for row in rows)
    ]
    return "\n".join(lines)


def _cells(outcomes: Iterable[Outcome], faults: Sequence[str]) -> list[str]:
    counts: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for outcome in outcomes:
        for key in (outcome.fault, "all"):
            counts[key] += 1
            failed[key] += outcome.failed is not None
    texts = {key: f"{counts[key]}" + (f" ({failed[key]} failed)" if failed[key] else "") for key in counts}
    return [texts.get(key, "-") for key in (*faults, "all")]
