"""The facts of a version that make up its health, whether a session or its log shows the version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from catalog.clock import Clock
from catalog.files.file_table import FileTable
from catalog.history.recent_events import recent_failures
from catalog.properties.index_properties import IndexConfiguration, is_outdated
from catalog.properties.optimization_properties import TARGET_READ_COST
from catalog.properties.target_file_size import TARGET_FILE_BYTES
from catalog.state.state_files import StateFolder
from otree.revision import Revision
from procedures.insight.health.diagnosis import are_indexed
from procedures.insight.health.health_parts import HealthFacts

# Failures count for this long.
_FAILURE_MILLIS = 7 * 24 * 3600 * 1000


class ViewedTable(StateFolder, Protocol):
    """A table, with or without a session."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def location(self) -> str:
        """Its root."""


class ViewedVersion(Protocol):
    """A version of a table, with or without a session; see ``TableSnapshot``."""

    @property
    def version(self) -> int:
        """The number."""

    @property
    def table_id(self) -> str:
        """Delta's metadata id."""

    @property
    def configuration(self) -> Mapping[str, str]:
        """The properties of the table itself."""

    @property
    def settings(self) -> Mapping[str, str]:
        """The properties in force."""

    @property
    def revisions(self) -> Mapping[int, Revision]:
        """The readable revisions by number."""

    @property
    def latest_revision(self) -> Revision | None:
        """The newest one that has a space."""

    @property
    def index_configuration(self) -> IndexConfiguration | None:
        """What the properties say about the index."""

    @property
    def file_table(self) -> FileTable:
        """The live files."""


def facts_of(
    table: ViewedTable,
    version: ViewedVersion,
    clock: Clock,
    *,
    commits: int,
    commit_bytes: int,
    clustering: tuple[str, ...],
) -> HealthFacts:
    """Collects the facts of a version.

    Args:
        table: the table.
        version: its newest version.
        clock: the time.
        commits: number of commits after the last checkpoint.
        commit_bytes: bytes of these commits.
        clustering: columns of CLUSTER BY.

    Raises:
        UseError: a property is wrong, or the files cannot be listed.
    """
    files, newest, index = version.file_table, version.latest_revision, version.index_configuration
    return HealthFacts(
        name=table.name,
        files=files,
        newest=newest,
        is_indexed=are_indexed(version.revisions, files, newest),
        cube_rows=files.rows_of_cubes(newest),
        has_index_columns=index is not None,
        target_bytes=TARGET_FILE_BYTES.value(version.settings),
        target_read_cost=TARGET_READ_COST.value(version.settings),
        commits=commits,
        # A version that was loaded before its checkpoint was written still names the commits.
        commit_bytes=commit_bytes if commits else 0,
        failures=recent_failures(table, version.table_id, clock.now() - _FAILURE_MILLIS),
        clustering=clustering,
        is_outdated=is_outdated(index, newest, version.configuration),
        fractions=() if index is None else index.sample_fractions,
    )
