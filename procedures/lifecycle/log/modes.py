"""The modes of ``CALL use.consolidate_log``, in the order in which they run: a checkpoint includes earlier commits."""

from procedures.lifecycle.log.commits import Commits
from procedures.lifecycle.log.events import Events
from procedures.lifecycle.log.file_metadata import FileMetadata
from procedures.lifecycle.log.log_mode import LogMode
from procedures.lifecycle.log.table_metadata import TableMetadata

MODES: tuple[LogMode, ...] = (TableMetadata(), FileMetadata(), Events(), Commits())
# They change nothing that a query of the table reads.
DEFAULT_MODES = (Events.name, Commits.name)
