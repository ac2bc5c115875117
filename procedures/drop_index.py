"""``CALL use.drop_index``: makes an indexed table an ordinary one again; no row is touched."""

from __future__ import annotations

from pyspark.sql import DataFrame

from catalog.errors import IndexConfigurationError
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot
from otree.revision import LAST_REVISION_KEY
from procedures.declaration import Call, Parameter, Procedure
from procedures.result_rows import DropIndexRow, data_frame_of, ddl_of
from procedures.rewrite.untag import Untagging, tagged, untag

_PREFIXES = ("use.index.", "qbeast.")
# What other writers of the format leave for display, beside the revisions.
_DISPLAYED = ("columnsToIndex", "cubeSize", "columnStats", "tableFormat")


def index_properties(snapshot: TableSnapshot) -> tuple[str, ...]:
    """Keys of the table's properties that belong to the index."""
    displayed = _DISPLAYED if LAST_REVISION_KEY in snapshot.configuration else ()
    keys = snapshot.configuration
    return tuple(sorted(key for key in keys if key.startswith(_PREFIXES) or key in displayed))


def _run(call: Call) -> DataFrame:
    table = ManagedTable.find(call.spark, call["table"])
    removed: list[str] = []

    def everything(snapshot: TableSnapshot) -> Untagging:
        removed[:] = index_properties(snapshot)
        return Untagging(tagged(snapshot.log_files), tuple(removed))

    done = untag(table, everything, "USE DROP INDEX", "USE drop_index")
    if done is None:
        raise IndexConfigurationError.not_indexed(table.name)
    properties = list(removed)
    # A writer that had read the properties may have committed tagged files just before; none can come after.
    late = untag(table, everything, "USE DROP INDEX", "USE drop_index")
    files, size = done.files + (late.files if late else 0), done.bytes + (late.bytes if late else 0)
    version = late.version if late else done.version
    message = f"{files} files lost their tags and the table {len(properties)} properties; no row was touched"
    return data_frame_of(call.spark, DropIndexRow, [DropIndexRow(version, files, size, properties, message)])


DROP_INDEX = Procedure(
    "drop_index",
    "Removes the index of a table: its properties and the tags of its files. Rows and files stay as they are.",
    (Parameter("table", "STRING", "Table name, delta.`path` or path."),),
    ddl_of(DropIndexRow),
    _run,
)
