"""Clocks for tests: time passes when the test says so."""

import threading


class FakeClock:
    """A clock that stands still until the test moves it; waiting takes no time and moves it."""

    def __init__(self, time=1_000_000_000):
        self.time = time
        self._set_back = 0

    def now(self):
        return self.time

    def monotonic(self):
        return (self.time + self._set_back) / 1000

    def wait(self, event, seconds):
        self.time += int(seconds * 1000)
        return event.is_set()

    def go_on(self, milliseconds):
        self.time += milliseconds

    def set_back(self, milliseconds):
        """The time of day is corrected; no time passes."""
        self.time -= milliseconds
        self._set_back += milliseconds


class LimitedClock(FakeClock):
    """A clock on which a number of waits take no time; further ones last until their event is set."""

    def __init__(self, time, waits):
        super().__init__(time)
        self._waits_left = waits
        self.waits_over = threading.Event()

    def wait(self, event, seconds):
        if self._waits_left:
            self._waits_left -= 1
            return super().wait(event, seconds)
        self.waits_over.set()
        return event.wait(60)
