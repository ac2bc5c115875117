"""The parameters that ``use.optimize`` shares with other operations, and its defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from procedures.declare.operation import Constraint, Int

MaxBytes = Annotated[
    int | None, Constraint(doc="Starts no further group after this many bytes were rewritten.", least=1)
]
MaxDuration = Annotated[
    str | None, Constraint(doc="Starts no further group after this time, for example '10 minutes'.")
]
RowsWhere = Annotated[
    str | None, Constraint(doc="Rewrites only files that may contain rows that match this predicate.")
]
Parallelism = Annotated[Int, Constraint(doc="Groups rewritten at the same time.", least=1)]

DEFAULT_ARGUMENTS: Mapping[str, Any] = {
    "strategy": None,
    "revision_id": None,
    "bytes_per_iter": None,
    "max_iterations": None,
    "max_bytes": None,
    "max_duration": None,
    "where": None,
    "files": None,
    "revision_rewrite": False,
    "parallelism": 1,
    "dry_run": False,
    "options": {},
    "plan": None,
    "groups": None,
    "quiet_period": None,
}
"""The arguments of a run that names none: the defaults of ``use.optimize``, which a test compares."""
