"""How a session starts: for which work, and whether its JVM runs already."""

from __future__ import annotations

import enum

SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Set under spark-submit, where the JVM already runs and has the master and all settings."""


class Lifetime(enum.Enum):
    """The kind of work that a session is optimized for."""

    SHORT = "short"
    """A few small jobs on metadata: nothing is compiled for speed."""
    PROGRAM = "program"
    """Jobs on data, one after the other: few tasks for small shuffles."""
    SERVER = "server"
    """Many users and jobs: Spark's defaults."""
