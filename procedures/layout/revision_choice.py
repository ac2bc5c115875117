"""Which revision new rows join: the newest one where it covers them, else a new one, with its table properties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from catalog.clock import SYSTEM_CLOCK, Clock
from catalog.properties.index_properties import CUBE_SIZE_RANGE, HASH_TYPES_KEY_PREFIX, IndexConfiguration
from catalog.table.snapshot import TableSnapshot
from otree.cardinality import WeightCardinality
from otree.revision import Revision, configuration_of, next_revision, staging_of
from otree.transformation import ColumnStats


def revision_for(
    snapshot: TableSnapshot,
    configuration: IndexConfiguration,
    stats: Sequence[ColumnStats],
    rows_of_file: int,
    location: str,
    weights: WeightCardinality | None = None,
    clock: Clock = SYSTEM_CLOCK,
    listed: TableSnapshot | None = None,
) -> tuple[Revision, dict[str, str]]:
    """The revision that covers data of these ranges, and the properties that make it where it does not exist yet.

    Args:
        snapshot: the table.
        configuration: what is to be indexed.
        stats: range of the data per column.
        rows_of_file: rows of a file of the target size, the default of a cube's size.
        location: the table's root.
        weights: rows and distinct weights of the data, noted in a new revision.
        clock: the time, noted in a new revision.
        listed: an earlier version whose files are listed for numbers that are in use, so that a commit need not wait
            for a job; ``snapshot`` when left out.
    """
    latest = snapshot.latest_revision
    smallest, largest = CUBE_SIZE_RANGE
    cube_size = configuration.cube_size or (
        latest.desired_cube_size if latest is not None else max(smallest, min(largest, rows_of_file))
    )
    renew = has_other_hash_types(snapshot, configuration)
    now = clock.now()
    revision = next_revision(latest, configuration.transformers, stats, cube_size, now, location, renew=renew)
    if latest is not None and revision.revision_id == latest.revision_id:
        return revision, {}
    revision = replace(revision, weights=weights)
    taken = (listed or snapshot).revision_ids_in_use | snapshot.stored_revisions.numbers
    while revision.revision_id in taken:
        revision = replace(revision, revision_id=revision.revision_id + 1)
    first = [staging_of(revision)] if not snapshot.stored_revisions.numbers else []
    new = configuration_of([*first, revision])
    return revision, new | configuration.remembered(snapshot.configuration, revision.revision_id)


def has_other_hash_types(snapshot: TableSnapshot, configuration: IndexConfiguration) -> bool:
    """Whether the columns' types hash differently from when the newest revision was made."""
    latest = snapshot.latest_revision
    written_as = snapshot.configuration.get(f"{HASH_TYPES_KEY_PREFIX}{latest.revision_id}") if latest else None
    return written_as is not None and written_as != ";".join(configuration.hash_types)
