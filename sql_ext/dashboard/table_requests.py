"""Requests for one table: each reader has a time limit, few run at once, and equal ones share a result."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from catalog.clock import Clock

_Result = TypeVar("_Result")

_KEPT_SECONDS = 5.0
_MOST_AT_ONCE = 4


class NoAnswerError(Exception):
    """A table took too long, or other tables keep all threads busy."""


@dataclass(eq=False)
class _Request(Generic[_Result]):
    """A request under way or done.

    Attributes:
        group: group of its Spark jobs.
        future: its result.
        readers: how many have asked for it and have not given up.
        is_cancelled: whether its jobs were cancelled; then its result may lack something.
        ended: when it ended, in seconds of the clock; None before.
    """

    group: str
    future: Future[_Result] = field(default_factory=Future)
    readers: int = 0
    is_cancelled: bool = False
    ended: float | None = None


class TableRequests(Generic[_Result]):
    """Answers requests in threads of their own.

    Args:
        gather: gathers what is asked about a table; gets its name, whether its plan is asked for, and the group of its
            Spark jobs.
        cancel: cancels the Spark jobs of a group.
        clock: the time.
    """

    def __init__(
        self, gather: Callable[[str, bool, str], _Result], cancel: Callable[[str], object], clock: Clock
    ) -> None:
        self._gather = gather
        self._cancel = cancel
        self._clock = clock
        self._lock = threading.Lock()
        self._requests: dict[tuple[str, bool], _Request[_Result]] = {}
        self._numbers = itertools.count(1)

    def get(self, name: str, with_plan: bool, seconds: float) -> _Result:
        """Returns what is asked about a table; a result of the last seconds is returned again.

        The jobs are cancelled when the last reader gives up. Then the next reader starts them anew.

        Args:
            name: full name of the table.
            with_plan: whether its plan is asked for.
            seconds: how long to wait.

        Raises:
            NoAnswerError: the table took longer, or other tables keep all threads busy.
            UseError: the table cannot be read.
        """
        deadline = self._clock.monotonic() + seconds
        while True:
            request = self._shared_request(name, with_plan)
            wait([request.future], deadline - self._clock.monotonic())
            if not request.future.done():
                self._leave(request)
                raise NoAnswerError(f"{name} did not answer within {seconds:g} seconds. Try it again later.")
            if not request.is_cancelled:
                return request.future.result()

    def _leave(self, request: _Request[_Result]) -> None:
        with self._lock:
            request.readers -= 1
            is_last = request.readers == 0
            request.is_cancelled |= is_last
        if is_last:
            self._cancel(request.group)

    def _shared_request(self, name: str, with_plan: bool) -> _Request[_Result]:
        with self._lock:
            now = self._clock.monotonic()
            self._requests = {
                key: request
                for key, request in self._requests.items()
                if request.ended is None or (not request.is_cancelled and now - request.ended < _KEPT_SECONDS)
            }
            known = self._requests.get((name, with_plan))
            if known is not None:
                # One that is cancelled counts until it ends: a table that hangs must not take all threads.
                known.readers += 1
                return known
            if sum(request.ended is None for request in self._requests.values()) >= _MOST_AT_ONCE:
                raise NoAnswerError(f"{_MOST_AT_ONCE} other requests are under way. Try it again later.")
            request: _Request[_Result] = _Request(f"use-dashboard-{next(self._numbers)}", readers=1)
            self._requests[name, with_plan] = request
        # A daemon: a table that does not answer must not keep the process from ending.
        threading.Thread(target=self._answer, args=(name, with_plan, request), name=request.group, daemon=True).start()
        return request

    def _answer(self, name: str, with_plan: bool, request: _Request[_Result]) -> None:
        try:
            result = self._gather(name, with_plan, request.group)
        except BaseException as error:  # noqa: BLE001 - whoever asked gets it
            request.ended = self._clock.monotonic()
            request.future.set_exception(error)
            return
        request.ended = self._clock.monotonic()
        request.future.set_result(result)
