"""The kind of work that a session is started for."""

from __future__ import annotations

import enum


class Lifetime(enum.Enum):
    """The kind of work that a session is optimized for."""

    SHORT = "short"
    """A few small jobs on metadata: nothing is compiled for speed."""
    PROGRAM = "program"
    """Jobs on data, one after the other: few tasks for small shuffles."""
    SERVER = "server"
    """Many users and jobs: Spark's defaults."""
