"""Commands of all procedures that have no file of their own in this package."""

from __future__ import annotations

import click

from sql_ext.commands.declarations import declarations
from sql_ext.commands.rows_command import command_name, rows_command

_EXAMPLES = {
    "index": (
        "use-spark index --table db.flights --columns time_hour,distance,carrier:hashing",
        "use-spark index --table 'parquet.`/data/old`' --columns a,b --convert",
    ),
    "purge": (
        "use-spark purge --table db.flights --older-than '10 days' --dry-run",
        "use-spark purge --table db.flights --older-than 42 --force",
    ),
    "protect": ("use-spark protect --table db.flights --version 42 --name month-end",),
    "plan": (
        "use-spark plan --table db.flights --columns time_hour",
        "use-spark plan --table db.flights --max-file-bytes 500000000 --store --json",
    ),
    "approximate": (
        "use-spark approximate 'SELECT avg(distance) FROM db.flights' --tolerance 0.01",
        "use-spark approximate 'SELECT count(*) FROM db.flights' --on-miss estimate --json",
    ),
    "explain_skipping": ("use-spark explain-skipping 'SELECT * FROM db.flights WHERE distance < 100'",),
    "cancel": ("use-spark cancel --id 3f2a91c04b7d",),
    "status": ("use-spark status --table db.flights", "use-spark status --json"),
    "quantiles": ("use-spark quantiles --table db.flights --column distance --n 10",),
}
_HIDDEN_FIRST = {
    "status": (
        *("location", "lease_expires_at", "lease_holder", "run_id", "started_at", "committed_bytes", "trigger"),
        *("committed_groups", "current", "last_run", "strategy"),
    ),
}


def other_command(name: str) -> click.Command | None:
    """Returns the command of a procedure that has no file of its own; None if there is no such procedure.

    Args:
        name: name of the command.
    """
    declared = next((p for p in declarations().signatures.values() if command_name(p) == name), None)
    return (
        None
        if declared is None
        else rows_command(
            declared, shown=_EXAMPLES.get(declared.name, ()), hidden_first=_HIDDEN_FIRST.get(declared.name, ())
        )
    )
