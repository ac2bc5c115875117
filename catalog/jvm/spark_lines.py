"""The lines of Spark that USE runs on, and the releases of Delta on each.

The only module that knows them. ``jars-build/build_shim.py`` and the Makefile read it too, so it imports nothing.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

SCALA = "2.13"


@dataclass(frozen=True)
class SparkLine:
    """A minor release of Spark.

    Attributes:
        name: for example ``4.1``.
        oldest: the oldest supported patch, which the shim is compiled against.
        newest: the newest patch that the tests run on.
        deltas: the newest supported patch of each minor release of Delta, oldest first.
    """

    name: str
    oldest: str
    newest: str
    deltas: tuple[str, ...]

    def delta_of(self, version: str) -> str | None:
        """Returns the minor release of Delta that a version belongs to; None if the line does not have it."""
        minor = minor_of(version)
        return minor if minor in (minor_of(delta) for delta in self.deltas) else None

    def supports(self) -> str:
        """Returns what the line supports, in words."""
        first, last = minor_of(self.deltas[0]), minor_of(self.deltas[-1])
        releases = f"Delta {first}" if first == last else f"Delta {first} to {last}"
        return f"Spark {self.name} with {releases}"


LINES = (
    SparkLine("4.0", "4.0.0", "4.0.5", ("4.0.1", "4.1.0", "4.2.0", "4.3.1", "4.4.0")),
    SparkLine("4.1", "4.1.0", "4.1.4", ("4.1.0", "4.2.0", "4.3.1", "4.4.0")),
    SparkLine("4.2", "4.2.0", "4.2.1", ("4.4.0",)),
)
"""Oldest first."""


class UnsupportedVersionError(ValueError):
    """A version of Spark or Delta that no line has; the message names the lines."""

    def __init__(self, what: str) -> None:
        """Creates the error.

        Args:
            what: the versions, for example ``Spark 3.5.6``.
        """
        super().__init__(f"USE for Spark does not run on {what}. It runs on {'; '.join(e.supports() for e in LINES)}.")


def minor_of(version: str) -> str:
    """Returns ``4.1`` of ``4.1.0``."""
    match = re.match(r"(\d+\.\d+)(?:\D|$)", version)
    return match[1] if match else version


def line_of(spark: str) -> SparkLine:
    """Returns the line of a version of Spark.

    Args:
        spark: for example ``4.1.2``.

    Raises:
        UnsupportedVersionError: no line has this version.
    """
    for line in LINES:
        if line.name == minor_of(spark):
            return line
    raise UnsupportedVersionError(f"Spark {spark}")


def delta_coordinates(line: SparkLine, delta: str) -> str:
    """Returns the Maven coordinates of Delta for a line.

    Args:
        line: line of Spark.
        delta: version of Delta.
    """
    # Delta has an artifact for each line of Spark since 4.1.
    name = f"delta-spark_{SCALA}" if minor_of(delta) == "4.0" else f"delta-spark_{line.name}_{SCALA}"
    return f"io.delta:{name}:{delta}"


def shim_name(spark: str, delta: str) -> str:
    """Returns the file name of the shim's jar for two versions.

    The shim uses internal classes of both, so there is a jar for each pair of minor releases.

    Args:
        spark: version of Spark.
        delta: version of Delta.

    Raises:
        UnsupportedVersionError: no line has these versions.
    """
    line = line_of(spark)
    minor = line.delta_of(delta)
    if minor is None:
        raise UnsupportedVersionError(f"Spark {spark} with Delta {delta}")
    return f"use-shim-{line.name}-delta-{minor}.jar"


def pinned(name: str, edge: str) -> str:
    """Returns the requirements of pip for one edge of a line, for the Makefile.

    Args:
        name: of the line.
        edge: ``oldest`` for the oldest Spark with the oldest Delta, or ``newest``.
    """
    line = line_of(name)
    spark, delta = (line.oldest, line.deltas[0]) if edge == "oldest" else (line.newest, line.deltas[-1])
    return f"pyspark=={spark} delta-spark=={delta}"


if __name__ == "__main__":
    sys.stdout.write(pinned(*sys.argv[1:3]) + "\n")
