"""Takes the index tags off files: the files, their rows, statistics and row ids stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from catalog.errors import ConcurrentChangeError
from catalog.jvm.java_errors import is_conflict, text_of
from catalog.jvm.session import described_jobs, work_session
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot
from otree.block import BLOCKS_TAG, REVISION_TAG

# Up to so many files Delta can put the commit on top of concurrent ones; more are streamed and tried anew instead.
MAX_FILES_IN_MEMORY = 10_000
MAX_ATTEMPTS = 10

_OWN_TAGS_PREFIX = "use."


@dataclass(frozen=True)
class Untagging:
    """What is to be taken off one version of a table.

    Attributes:
        files: AddFile rows to untag; each has some tag of the index.
        properties: keys of table properties to remove.
        added: table properties to set, if something is removed.
    """

    files: DataFrame
    properties: tuple[str, ...] = ()
    added: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Untagged:
    """A committed untagging: its version, and the files and bytes that lost their tags."""

    version: int
    files: int
    bytes: int


def is_index_tag(key: Column) -> Column:
    """Whether a tag's key belongs to the index."""
    return key.isin(REVISION_TAG, BLOCKS_TAG) | key.startswith(_OWN_TAGS_PREFIX)


def tagged(files: DataFrame) -> DataFrame:
    """The AddFile rows that have a tag of the index."""
    return files.where(F.exists(F.map_keys(F.col("tags")), is_index_tag))


def untag(
    table: ManagedTable, choose: Callable[[TableSnapshot], Untagging], operation: str, what: str
) -> Untagged | None:
    """Removes tags and properties in one commit without data change.

    A lost race is tried again on the newer version, so that a concurrent writer never fails and is never undone.

    Args:
        table: the table.
        choose: says what to remove; asked anew for each version that is tried.
        operation: name in the table's history.
        what: description of the Spark jobs.

    Returns:
        What was committed; None when there was nothing to remove.

    Raises:
        ConcurrentChangeError: the race was lost too often; nothing was committed.
    """
    session = work_session(table.spark)
    for attempt in range(1, MAX_ATTEMPTS + 1):
        transaction = table.transaction(session)
        with described_jobs(session, f"{what}: {table.name}"):
            wanted = choose(TableSnapshot.of(transaction.state()))
            totals = wanted.files.agg(F.count(F.lit(1)).alias("files"), F.sum("size").alias("bytes")).collect()[0]
            if not totals.files and not wanted.properties:
                return None
            transaction.configure(wanted.added, removed=wanted.properties)
            parameters = {"files": str(totals.files), "properties": str(len(wanted.properties))}
            large = totals.files > MAX_FILES_IN_MEMORY
            try:
                version = transaction.replace_entries(_without_tags(wanted.files), operation, parameters, large)
            except (Py4JJavaError, PySparkException) as error:
                if not is_conflict(error):
                    raise
                if attempt < MAX_ATTEMPTS:
                    continue
                raise ConcurrentChangeError(
                    f"Other writers were first {MAX_ATTEMPTS} times; nothing was committed: {text_of(error)}"
                ) from error
            return Untagged(version, totals.files, totals.bytes or 0)
    return None


def _without_tags(files: DataFrame) -> DataFrame:
    kept = F.map_filter("tags", lambda key, _: ~is_index_tag(key))
    return files.withColumn("tags", F.when(F.size(kept) > 0, kept)).withColumn("dataChange", F.lit(False))
