"""``CALL use.drop_index``: removes the index of a table without changing any row."""

from __future__ import annotations

from catalog.counted_nouns import agreeing, counted
from catalog.errors import IndexConfigurationError
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot
from otree.revision import LAST_REVISION_KEY
from procedures.declare.declaration import Call
from procedures.declare.operation import TableName, operation
from procedures.declare.result_rows import DropIndexRow
from procedures.rewrite.untag import Untagging, tagged, untag

_PREFIXES = ("use.index.", "qbeast.")
# Properties that other writers of the format set for display, in addition to the revisions.
_DISPLAYED = ("columnsToIndex", "cubeSize", "columnStats", "tableFormat")


def index_properties(snapshot: TableSnapshot) -> tuple[str, ...]:
    """Returns the keys of the table properties that belong to the index."""
    displayed = _DISPLAYED if LAST_REVISION_KEY in snapshot.configuration else ()
    keys = snapshot.configuration
    return tuple(sorted(key for key in keys if key.startswith(_PREFIXES) or key in displayed))


def drop_index(call: Call, table: TableName) -> DropIndexRow:
    """Removes the index of a table: its properties and the tags of its files. Rows and files stay as they are.

    Raises:
        UseError: the table has no index.
    """
    found = ManagedTable.find(call.spark, table)
    removed: list[str] = []

    def everything(snapshot: TableSnapshot) -> Untagging:
        removed[:] = index_properties(snapshot)
        return Untagging(tagged(snapshot.log_files), tuple(removed))

    commit = untag(found, everything, "USE DROP INDEX", "USE drop_index")
    if commit is None:
        raise IndexConfigurationError.not_indexed(found.name)
    properties = list(removed)
    # A writer that read the properties earlier may have committed tagged files in between. None can follow, because
    # its commit would conflict with the change of the properties.
    late = untag(found, everything, "USE DROP INDEX", "USE drop_index")
    files, size = commit.files + (late.files if late else 0), commit.bytes + (late.bytes if late else 0)
    version = late.version if late else commit.version
    message = (
        f"removed the tags of {counted(files, 'file')} and {len(properties)} table "
        f"{agreeing(len(properties), 'property', 'properties')}; no row was changed"
    )
    return DropIndexRow(version, files, size, properties, message)


DROP_INDEX = operation(drop_index)
