"""A case: an input that a seed makes, the reader that gets it, and whether the outcome is one that is promised."""

from __future__ import annotations

import re
import signal
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from types import FrameType
from typing import Any

from catalog.errors import UseError

MOST_SECONDS = 10
"""Of a processor: on a busy machine, a reader may take longer."""
WAITING_SECONDS = 120
"""After so long, a reader waits for something that does not come."""
_TIMERS = (
    (signal.ITIMER_PROF, signal.SIGPROF, MOST_SECONDS),
    (signal.ITIMER_REAL, signal.SIGALRM, WAITING_SECONDS),
)
_CODE = re.compile(r"USE_[A-Z_]+")
_SHOWN = 2_000


@dataclass(frozen=True)
class Reader:
    """A reader of inputs from outside.

    Attributes:
        name: for the summary.
        make: makes an input by chance.
        read: reads it; fails with ``AssertionError`` if a promise about the result is broken.
        errors: errors that are a proper end beside those of the project, such as a usage error of the command line.
        share: how often it is asked, relative to the others.
    """

    name: str
    make: Callable[[Random], Any]
    read: Callable[[Any], object]
    errors: tuple[type[BaseException], ...] = ()
    share: int = 4


@dataclass(frozen=True)
class Outcome:
    """How a case has ended.

    Attributes:
        reader: name of the reader.
        end: ``value``, the code of the error, or the name of another accepted error.
        failure: what is wrong with it; None if nothing is.
        shown: the input, for people.
    """

    reader: str
    end: str
    failure: str | None = None
    shown: str = ""


class HangError(BaseException):
    """A reader takes longer than promised; no reader catches it."""


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise HangError(f"it takes more than {MOST_SECONDS} s of a processor, or waits for more than {WAITING_SECONDS} s")


def outcome_of(readers: list[Reader], seed: int, *, shows: bool = False) -> Outcome:
    """Runs the case of a seed in the main thread.

    Args:
        readers: all readers; the seed decides which one is asked.
        seed: the seed.
        shows: whether the outcome has the input, even if nothing is wrong.
    """
    chance = Random(seed)
    reader = chance.choices(readers, [each.share for each in readers])[0]
    made = reader.make(chance)
    # Before it is read: a reader may change it.
    text = shown(made) if shows else ""
    for kind, number, seconds in _TIMERS:
        signal.signal(number, _stop)
        signal.setitimer(kind, seconds)
    try:
        reader.read(made)
    except UseError as error:
        problem = _problem(error)
        return Outcome(reader.name, error.code, problem, text or shown(made))
    except reader.errors as error:
        return Outcome(reader.name, type(error).__name__, shown=text)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is the outcome
        trace = "".join(traceback.format_exception(error, limit=-6))
        return Outcome(reader.name, type(error).__name__, trace, text or shown(made))
    finally:
        for kind, _, _ in _TIMERS:
            signal.setitimer(kind, 0)
    return Outcome(reader.name, "value", shown=text)


def _problem(error: UseError) -> str | None:
    """What is wrong with an error of the project: its text goes to SQL clients, logs and terminals."""
    if _CODE.fullmatch(error.code) is None or error.code == UseError.code:
        return f"the error has no code of its own: {error}"
    if "\n" in error.message or "Traceback" in error.message:
        return f"the message has more than one line: {error!r}"
    try:
        str(error).encode()
    except UnicodeEncodeError:
        return f"the message cannot be sent: {error!r}"
    return None


def shown(made: Any) -> str:
    """Returns an input for people, on one line of a terminal or a few."""
    text = repr(made)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text):,} characters)"
