"""The steps of a rewrite and of an indexed write, and the observer that callers may pass to see them."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum


class Step(Enum):
    """A step, in the order of execution.

    Attributes:
        READ: the transaction takes the files of the plan (rewrites only).
        PLACE: the rows are measured, and the layout is decided.
        REVISION: the properties of a new revision are committed separately (rewrites whose rows need one).
        WRITE: the rows are written.
        VERIFY: the written rows are compared with the rows that were read.
        TAG: the written files get their tags (indexed writes; a rewrite tags in its commit).
        COMMIT: the transaction commits (rewrites; Delta itself commits an indexed write).
    """

    READ = "read"
    PLACE = "place"
    REVISION = "revision"
    WRITE = "write"
    VERIFY = "verify"
    TAG = "tag"
    COMMIT = "commit"


StepObserver = Callable[[Step], None]
"""Called before each step begins; an observer that raises stops the work there, and nothing is committed."""


def ignore_step(_: Step) -> None:
    """The observer of callers that pass none."""
