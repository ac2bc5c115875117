"""``CALL use.drop_index``: removes the index of a table and ends its optimization, without changing any row."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.counted_nouns import agreeing, counted
from catalog.errors import IndexConfigurationError, UseError
from catalog.jvm.session import described_jobs
from catalog.sql_names import name_parts, quoted
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot
from otree.errors import IndexFormatError
from otree.revision import LAST_REVISION_KEY
from procedures.declare.declaration import Call
from procedures.declare.operation import TableName, operation
from procedures.declare.result_rows import ShownRow
from procedures.process.application import application
from procedures.process.running_services import CHANGED, CatalogChange
from procedures.rewrite.untag import Untagging, tagged, untag
from procedures.service.release import automatic_properties, release_state, switches_off

_PREFIXES = ("use.index.", "qbeast.")
# Properties that other writers of the format set for display, in addition to the revisions.
_DISPLAYED = ("columnsToIndex", "cubeSize", "columnStats", "tableFormat")


@dataclass(frozen=True)
class DropIndexRow(ShownRow):
    """A table whose index was removed.

    Attributes:
        version: version committed.
        files: files whose tags were removed.
        bytes: their bytes.
        properties: keys of the properties that were removed.
        message: one-sentence summary.
        files_before: live files of the table before.
        bytes_before: their bytes.
        files_after: live files afterwards: the same ones, unless others have written meanwhile.
        bytes_after: their bytes.
        released: stored plans and other files below ``_use/`` that were deleted.
        rewrite_with: the statement of Delta that rewrites the files without USE.
    """

    version: int
    files: int
    bytes: int
    properties: list[str]
    message: str
    files_before: int
    bytes_before: int
    files_after: int
    bytes_after: int
    released: list[str]
    rewrite_with: str


def index_properties(snapshot: TableSnapshot) -> tuple[str, ...]:
    """Returns the keys of the table properties that belong to the index."""
    displayed = _DISPLAYED if LAST_REVISION_KEY in snapshot.configuration else ()
    keys = snapshot.configuration
    return tuple(sorted(key for key in keys if key.startswith(_PREFIXES) or key in displayed))


def drop_index(call: Call, table: TableName) -> DropIndexRow:
    """Removes the index of a table and ends its automatic optimization. Rows and files stay as they are.

    Raises:
        UseError: the table has no index, and no property asks for its optimization.
    """
    found = ManagedTable.find(call.spark, table)
    found.check_rights()
    removed: list[str] = []

    def everything(snapshot: TableSnapshot) -> Untagging:
        own = snapshot.configuration
        removed[:] = sorted({*index_properties(snapshot), *automatic_properties(own)})
        kept = {key: value for key, value in own.items() if key not in removed}
        off = switches_off(snapshot, kept)
        # A property that is set is not removed, and the second attempt keeps what the first one has set.
        removed[:] = [key for key in removed if key not in off]
        return Untagging(tagged(snapshot.log_files), tuple(removed), off)

    before = found.snapshot()
    with described_jobs(call.spark, f"USE drop_index: {found.name}"):
        total_before, statement = before.total, _rewriting(found.name, before)
    for run in application().runs.live(lambda run: run.location == found.location):
        run.request_stop("INDEX_DROPPED", "the index of the table was dropped")
    commit = untag(found, everything, "USE DROP INDEX", "USE drop_index")
    if commit is None:
        raise IndexConfigurationError.not_indexed(found.name)
    properties = list(removed)
    # A writer that read the properties earlier may have committed tagged files in between. None can follow, because
    # its commit would conflict with the change of the properties.
    late = untag(found, everything, "USE DROP INDEX", "USE drop_index")
    application().services.notify(CatalogChange(CHANGED, found.name, found.location))
    after = found.snapshot()
    with described_jobs(call.spark, f"USE drop_index: {found.name}"):
        total_after = after.total
    files, size = commit.files + (late.files if late else 0), commit.bytes + (late.bytes if late else 0)
    message = (
        f"removed the tags of {counted(files, 'file')} and {len(properties)} table "
        f"{agreeing(len(properties), 'property', 'properties')}; no row was changed; automatic optimization is off"
    )
    return DropIndexRow(
        late.version if late else commit.version,
        files,
        size,
        properties,
        message,
        *total_before,
        *total_after,
        release_state(found, application().clock.now()),
        statement,
    )


def _rewriting(name: str, snapshot: TableSnapshot) -> str:
    """The statement of Delta that gives a table a layout without USE, by the columns of its index."""
    try:
        index = snapshot.index_configuration
    except (UseError, IndexFormatError):
        index = None
    if index is None:
        return f"OPTIMIZE {name}"
    columns = (".".join(map(quoted, name_parts(column))) for column in index.logical_columns)
    return f"OPTIMIZE {name} ZORDER BY ({', '.join(columns)})"


DROP_INDEX = operation(drop_index)
