"""The modes of ``CALL use.consolidate_log``, in the order in which they run: a checkpoint includes earlier commits."""

from procedures.log_consolidation.commits import Commits
from procedures.log_consolidation.events import Events
from procedures.log_consolidation.file_metadata import FileMetadata
from procedures.log_consolidation.log_mode import LogMode
from procedures.log_consolidation.table_metadata import TableMetadata

MODES: tuple[LogMode, ...] = (TableMetadata(), FileMetadata(), Events(), Commits())
# They change nothing that a query of the table reads.
DEFAULT_MODES = (Events.name, Commits.name)
