"""The ledger of a fleet: what was spent of its budgets, and which runs are under way, for all services of a metastore.

The newest of its numbered texts has the whole state. Who changes it creates the next number. If another process was
faster, the change is made again on its state, so that no two processes spend the same bytes.

Source:
    Optimistic concurrency control: H. Kung and J. Robinson, ACM TODS 6(2), 1981.
"""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol, TypeVar

from catalog.counted_nouns import counted
from catalog.epoch_millis import LAST_MILLIS, moment
from catalog.errors import ConcurrentChangeError
from catalog.properties.fleet_properties import FLEET_MAX_BYTES, FLEET_MAX_RUNS, Pool
from catalog.state.state_files import FieldError, Fields, Unreadable, parse

logger = logging.getLogger(__name__)

_Answer = TypeVar("_Answer")

USED_UP, TOO_LARGE, TOO_MANY_RUNS = "BUDGET_USED_UP", "GROUP_LARGER_THAN_BUDGET", "TOO_MANY_RUNS"
"""Reason codes of refusals."""

LEDGER_FOLDER = "_use/fleet"
"""Where it is, below the location of the database ``default``."""
RUN_MILLIS = 45_000
"""A run that is not renewed for so long no longer counts."""
# What a wrong clock has written must not block other processes for days: a run that ends later than this from now does
# not count, and bytes that are spent later count when their time comes. Two clocks may be wrong by an hour each.
MOST_AHEAD_MILLIS = 2 * 3_600_000
_MILLIS_PER_HOUR, _MILLIS_PER_DAY = 3_600_000, 86_400_000
KEPT_MILLIS = 31 * _MILLIS_PER_DAY
# What was spent longer ago is added up by the hour, and then by the day; the newest time of each counts.
_BY_HOUR_MILLIS, _BY_DAY_MILLIS = _MILLIS_PER_HOUR, 3 * _MILLIS_PER_DAY
_NAME = re.compile(r"(\d{20})\.json", re.ASCII)
# Texts that stay behind the newest one, for processes that are about to create its successor.
_KEPT_TEXTS = 200
_CLEANED_EVERY = 20
_MOST_ATTEMPTS = 100
_MOST_BYTES = 2**62


class Texts(Protocol):
    """See ``catalog.jvm.shared_texts.SharedTexts``."""

    def create(self, name: str, text: str) -> bool:
        """Writes a text unless there is one of this name."""
        ...

    def read(self, name: str) -> str | None:
        """Returns the text of a name."""
        ...

    def names(self) -> list[str]:
        """Returns all names, sorted."""
        ...

    def delete(self, names: Sequence[str]) -> None:
        """Deletes texts, in this order."""
        ...


@dataclass(frozen=True)
class Spending:
    """Bytes that were rewritten.

    Attributes:
        at: when the rewrite began, epoch milliseconds.
        database: database of the table; '' for a table that is named by its path.
        bytes: its input bytes.
    """

    at: int
    database: str
    bytes: int


@dataclass(frozen=True)
class OpenRun:
    """A run under way.

    Attributes:
        run_id: its id.
        table: full name of the table.
        database: see ``Spending``.
        holder: host and process.
        expires_at: epoch milliseconds, unless it is renewed.
    """

    run_id: str
    table: str
    database: str
    holder: str
    expires_at: int


@dataclass(frozen=True)
class Refusal:
    """Why a budget does not allow a rewrite or a run now.

    Attributes:
        code: reason code.
        message: the same for people.
        until: when it may be allowed, epoch milliseconds; None = nobody can tell.
        is_first: whether it is the first refusal for want of bytes within a period.
    """

    code: str
    message: str
    until: int | None
    is_first: bool = False

    @property
    def text(self) -> str:
        """The code and the message, for people."""
        return f"{self.code}: {self.message}"


@dataclass(frozen=True)
class LedgerState:
    """What a text of the ledger says. Its methods are pure.

    Attributes:
        spent: what was spent within ``KEPT_MILLIS``.
        runs: the runs under way.
        used_up: labels of the pools that have refused bytes, and until when this is no news, epoch milliseconds.
    """

    spent: tuple[Spending, ...] = ()
    runs: tuple[OpenRun, ...] = ()
    used_up: Mapping[str, int] = field(default_factory=dict)

    def spent_of(self, database: str | None, since: int, until: int = LAST_MILLIS) -> int:
        """Bytes that were spent since a time.

        Args:
            database: only its tables count; None = all tables do.
            since: epoch milliseconds, exclusive.
            until: epoch milliseconds, inclusive.
        """
        return sum(s.bytes for s in self.spent if since < s.at <= until and _is_of(s.database, database))

    def refusal(self, pools: Sequence[Pool], size: int, now: int) -> Refusal | None:
        """Why some bytes may not be spent now; None if they may.

        Args:
            pools: the budgets of the table.
            size: the bytes.
            now: epoch milliseconds.
        """
        refusals = [refusal for pool in pools if (refusal := self._refusal(pool, size, now)) is not None]
        return max(refusals, key=lambda r: (r.until is None, r.until or 0), default=None)

    def has_room(self, pools: Sequence[Pool], size: int, now: int) -> tuple[LedgerState, Refusal | None]:
        """Says why some bytes may not be spent now, and remembers which budgets have refused; see ``refusal``."""
        refusing = [pool for pool in pools if self._refusal(pool, size, now) is not None]
        refused = self.refusal(pools, size, now)
        news = {p.label: now + p.period for p in refusing if self.used_up.get(p.label, 0) <= now}
        if refused is None or refused.code != USED_UP or not news:
            return self, refused
        return replace(self, used_up={**self.used_up, **news}), replace(refused, is_first=True)

    def spend(self, pools: Sequence[Pool], database: str, size: int, now: int) -> tuple[LedgerState, Refusal | None]:
        """Spends bytes, or refuses to.

        Args:
            pools: see ``refusal``.
            database: see ``Spending``.
            size: the bytes.
            now: epoch milliseconds.
        """
        state, refused = self.has_room(pools, size, now)
        if refused is not None:
            return state, refused
        return replace(self, spent=_thinned((*self.spent, Spending(now, database, size)), now)), None

    def begin(self, pools: Sequence[Pool], run: OpenRun, now: int) -> tuple[LedgerState, Refusal | None]:
        """Adds a run, or refuses to.

        Args:
            pools: the budgets of its table.
            run: the run.
            now: epoch milliseconds.
        """
        latest = now + MOST_AHEAD_MILLIS + RUN_MILLIS
        live = tuple(r for r in self.runs if now < r.expires_at <= latest and r.run_id != run.run_id)
        for pool in pools:
            running = [r for r in live if _is_of(r.database, pool.database)]
            if pool.max_runs is not None and len(running) >= pool.max_runs:
                number = counted(len(running), "run")
                note = f"{pool.label} has {number} under way, and {FLEET_MAX_RUNS.name} is {pool.max_runs}"
                return self, Refusal(TOO_MANY_RUNS, note, None)
        return replace(self, runs=(*live, run)), None

    def renew(self, run: OpenRun, now: int) -> LedgerState:
        """Lets a run go on; adds it again if another process has dropped it because it was not renewed in time.

        Args:
            run: the run.
            now: epoch milliseconds.
        """
        others = tuple(r for r in self.runs if r.run_id != run.run_id)
        return replace(self, runs=(*others, replace(run, expires_at=now + RUN_MILLIS)))

    def end(self, run_id: str) -> LedgerState:
        """Removes a run."""
        return replace(self, runs=tuple(r for r in self.runs if r.run_id != run_id))

    def _refusal(self, pool: Pool, size: int, now: int) -> Refusal | None:
        most = pool.max_bytes
        if most is None:
            return None
        if size > most:
            note = f"a group of {size} bytes is larger than {FLEET_MAX_BYTES.name} = {most} of {pool.label}"
            return Refusal(TOO_LARGE, note, None)
        spent = self.spent_of(pool.database, now - pool.period, now + MOST_AHEAD_MILLIS)
        if spent + size <= most:
            return None
        until = self._allowed_at(pool, size, now)
        note = (
            f"{FLEET_MAX_BYTES.name} = {most} of {pool.label} leaves {max(most - spent, 0)} bytes, and the next group "
            f"has {size}; it fits at {moment(until):%Y-%m-%d %H:%M:%S} UTC"
        )
        return Refusal(USED_UP, note, until)

    def _allowed_at(self, pool: Pool, size: int, now: int) -> int:
        """When so much of what was spent is a period old that some bytes fit."""
        most = pool.max_bytes or 0
        ours = sorted((s for s in self.spent if _is_of(s.database, pool.database)), key=lambda s: s.at)
        left = self.spent_of(pool.database, now - pool.period, now + MOST_AHEAD_MILLIS)
        for spending in ours:
            if spending.at <= now - pool.period:
                continue
            left -= spending.bytes
            if left + size <= most:
                return spending.at + pool.period
        return now

    def to_json(self) -> str:
        """The text."""
        return json.dumps(
            {
                "spent": [[s.at, s.database, s.bytes] for s in self.spent],
                "runs": [asdict(run) for run in self.runs],
                "used_up": dict(self.used_up),
            },
            separators=(",", ":"),
        )

    @classmethod
    def parse(cls, text: str) -> LedgerState | Unreadable:
        """The state of a text, or why there is none; total."""
        return parse(
            text,
            lambda fields: cls(
                tuple(_spending(entry) for entry in fields.entries("spent")),
                tuple(_run(entry) for entry in fields.entries("runs")),
                fields.times("used_up"),
            ),
        )


def _spending(entry: Any) -> Spending:
    if not isinstance(entry, list) or len(entry) != 3 or not isinstance(entry[1], str):
        raise FieldError("'spent' has an entry that is no list of time, database and bytes")
    fields = Fields({"at": entry[0], "bytes": entry[2]})
    return Spending(fields.whole_number("at"), entry[1], fields.whole_number("bytes", most=_MOST_BYTES))


def _run(entry: Any) -> OpenRun:
    if not isinstance(entry, dict):
        raise FieldError("'runs' has an entry that is no object")
    fields = Fields(entry)
    database = fields.text_or_none("database")
    return OpenRun(
        fields.text("run_id"),
        fields.text_or_none("table") or "",
        database or "",
        fields.text("holder"),
        fields.whole_number("expires_at"),
    )


def _is_of(database: str, wanted: str | None) -> bool:
    return wanted is None or database == wanted


def _thinned(spent: Sequence[Spending], now: int) -> tuple[Spending, ...]:
    """The same with older entries added up; each sum has the newest of its times, so that it counts for no less."""
    sums: dict[tuple[int, int, str], Spending] = {}
    for number, entry in enumerate(spent):
        age = now - entry.at
        if age >= KEPT_MILLIS:
            continue
        length = _MILLIS_PER_DAY if age >= _BY_DAY_MILLIS else _MILLIS_PER_HOUR if age >= _BY_HOUR_MILLIS else 0
        key = (length, entry.at // length if length else number, entry.database)
        known = sums.get(key)
        sums[key] = (
            entry if known is None else Spending(max(known.at, entry.at), entry.database, known.bytes + entry.bytes)
        )
    return tuple(sorted(sums.values(), key=lambda s: (s.at, s.database)))


class FleetLedger:
    """The ledger of a metastore.

    Args:
        texts: where it is.
    """

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._lock = threading.Lock()

    def state(self) -> LedgerState:
        """Returns the newest state."""
        return self._newest()[1]

    def change(self, step: Callable[[LedgerState], tuple[LedgerState, _Answer]]) -> _Answer:
        """Makes a change on the newest state, as if nobody else made one at the same time.

        Args:
            step: the state after it, and an answer; it is called again if another process was faster.

        Raises:
            ConcurrentChangeError: others were faster, again and again.
            Py4JJavaError: the file system refuses.
        """
        with self._lock:
            for _ in range(_MOST_ATTEMPTS):
                number, before, base = self._newest()
                after, answer = step(before)
                if after == before:
                    return answer
                name = _name(number + 1)
                if not self._texts.create(name, after.to_json()):
                    continue
                names = self._texts.names()
                if base is not None and base not in names:
                    # This process was suspended for so long that its successors were deleted: the text is a stray.
                    self._texts.delete([name])
                    continue
                if (number + 1) % _CLEANED_EVERY == 0:
                    self._texts.delete([n for n in names if _NAME.fullmatch(n) and n < _name(number - _KEPT_TEXTS)])
                return answer
        raise ConcurrentChangeError("The ledger of the fleet changes too often; nothing was spent.")

    def _newest(self) -> tuple[int, LedgerState, str | None]:
        """The number of the newest text, the state of the newest that can be read, and the name of the newest."""
        names = [name for name in self._texts.names() if _NAME.fullmatch(name)]
        for name in reversed(names):
            text = self._texts.read(name)
            state = None if text is None else LedgerState.parse(text)
            if isinstance(state, LedgerState):
                return int(names[-1].removesuffix(".json")), state, names[-1]
            logger.warning("The text %s of the fleet's ledger cannot be read (%s); an older one counts.", name, state)
        return (int(names[-1].removesuffix(".json")) if names else 0), LedgerState(), names[-1] if names else None


def _name(number: int) -> str:
    return f"{max(number, 0):020}.json"
