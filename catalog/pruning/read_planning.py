"""Planning of reads: samples become ranges of weights, and filters become a region per revision."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from catalog.predicates.conditions import Comparison, nodes
from catalog.predicates.index_conditions import IndexCondition
from catalog.pruning.regions import Regions
from otree.errors import IndexFormatError
from otree.hash_types import HASH_TYPES_KEY_PREFIX
from otree.region import Region
from otree.revision import Revision, newest_revision, stored_revisions
from otree.weight import MAX_WEIGHT, MIN_WEIGHT, WeightRange

logger = logging.getLogger(__name__)

# Maximum of conditions times revisions that are evaluated for one scan, which takes about a second.
_MOST_NODES = 100_000


class SampleReason(str, Enum):
    """Why Spark takes a sample itself, row by row."""

    NOT_INDEXED = "NOT_INDEXED"
    """The rows come from a table without an index, or not from a Delta table."""
    NOT_A_TABLE = "NOT_A_TABLE"
    """An operation below the sample does not keep or drop single rows: a join, an aggregation, a limit."""
    NON_DETERMINISTIC_BELOW = "NON_DETERMINISTIC_BELOW"
    """A projection or filter below the sample is non-deterministic."""
    SAMPLE_OF_SAMPLE = "SAMPLE_OF_SAMPLE"
    """A sample or a filter on a hash is below the sample: the same weights would be selected again."""
    WEIGHTS_WITH_GAPS = "WEIGHTS_WITH_GAPS"
    """The table was made from a sample or a split: parts of the range of weights have no row."""
    WITH_REPLACEMENT = "WITH_REPLACEMENT"
    """The sample is with replacement."""
    CACHED = "CACHED"
    """The rows come from a cache."""
    MISSING_COLUMN = "MISSING_COLUMN"
    """A column of the index was dropped from the table."""
    SWITCHED_OFF = "SWITCHED_OFF"
    """``spark.qbeast.use.sampling.enabled`` is false in the session."""
    NOT_CONSIDERED = "NOT_CONSIDERED"
    """The rule did not run: the application is not attached, or its rule is excluded in the session."""
    INDEX_UNREADABLE = "INDEX_UNREADABLE"
    """The property of the newest revision is missing or cannot be read."""
    ERROR = "ERROR"
    """Planning failed; the log has the error."""


@dataclass(frozen=True)
class _Index:
    revisions: Mapping[int, Revision]
    newest: Revision | IndexFormatError | None
    hash_types: Mapping[int, str]


@lru_cache(maxsize=64)
def _index(configuration: str) -> _Index:
    """Returns the readable part of the index properties; other revisions are read completely."""
    properties: Mapping[str, str] = json.loads(configuration)
    stored = stored_revisions(properties)
    for key, reason in stored.unreadable.items():
        logger.warning("Queries skip no files of the unreadable revision '%s': %s", key, reason)
    newest: Revision | IndexFormatError | None
    try:
        newest = newest_revision(properties, stored)
    except IndexFormatError as error:
        newest = error
    types = {number: properties.get(f"{HASH_TYPES_KEY_PREFIX}{number}") for number in stored.readable}
    known = {number: text for number, text in types.items() if text is not None}
    return _Index(stored.readable, newest, known)


def refused_sample(reason: SampleReason, detail: str) -> str:
    """Returns the response to the shim with the reason why Spark takes a sample itself."""
    return json.dumps({"reason": reason.value, "detail": detail})


def plan_sample(configuration: str, lower: float, upper: float) -> str:
    """Returns which rows a sample of fractions [lower, upper) contains.

    Args:
        configuration: the table's properties, as JSON.
        lower: fraction, inclusive.
        upper: fraction, exclusive.

    Returns:
        JSON with the hashed columns (physical names) and the first and last weight, null if unbounded; or with the
        reason and a detail if Spark must take the sample itself.
    """
    revision = _index(configuration).newest
    if isinstance(revision, IndexFormatError):
        return refused_sample(SampleReason.INDEX_UNREADABLE, str(revision))
    if revision is None or not revision.transformations:
        return refused_sample(SampleReason.NOT_INDEXED, "the table has no indexed file yet")
    if _has_gaps(configuration):
        return refused_sample(
            SampleReason.WEIGHTS_WITH_GAPS, "the rows were selected by their weights when they were written"
        )
    weights = WeightRange.of_sample(lower, upper)
    if weights is None:
        weights = WeightRange(MAX_WEIGHT, MIN_WEIGHT)  # no row
    return json.dumps(
        {
            "columns": list(revision.columns),
            "first": None if weights.first == MIN_WEIGHT else weights.first,
            "last": None if weights.last == MAX_WEIGHT else weights.last,
        }
    )


@dataclass(frozen=True)
class SampleFacts:
    """Properties of the samples of a table.

    Attributes:
        columns: columns whose hash is the weight, by their stored names.
        coarse: why the size of a sample can differ much from its fraction; None if there is no known reason.
        has_gaps: whether parts of the range of weights have no row, so that a sample says nothing about the others.
    """

    columns: tuple[str, ...]
    coarse: str | None
    has_gaps: bool


def sample_facts(configuration: str) -> SampleFacts | None:
    """Returns properties of the samples of a table; None without a readable newest revision.

    Args:
        configuration: the table's properties, as JSON.
    """
    revision = _index(configuration).newest
    if revision is None or isinstance(revision, IndexFormatError):
        return None
    weights = revision.weights
    low = weights is not None and weights.is_low(revision.desired_cube_size)
    message = weights.message if weights is not None and low else None
    return SampleFacts(revision.columns, message, _has_gaps(configuration))


def _has_gaps(configuration: str) -> bool:
    """Whether rows of the table were selected by the weights that they have in the newest revision."""
    index = _index(configuration)
    columns = index.newest.columns if isinstance(index.newest, Revision) else None
    alike = (revision.weights for revision in index.revisions.values() if revision.columns == columns)
    return any(weights is not None and weights.has_gaps for weights in alike)


def plan_read(configuration: str, condition: IndexCondition) -> str | None:
    """Returns the boxes that the blocks of each revision must overlap for a scan with this condition.

    Args:
        configuration: the table's properties, as JSON.
        condition: of the rows to read.

    Returns:
        JSON ``{"revisions": {id: {dimensions, boxes: [{first_weight, last_weight, lower, upper}]}}}``, or None if
        no file can be skipped. A block must overlap one of the boxes.
    """
    index = _index(configuration)
    queries = {}
    for revision in _affordable(list(readable_revisions(configuration).values()), condition):
        region = Regions(revision, index.hash_types.get(revision.revision_id)).region(condition)
        if not region.is_all:
            queries[str(revision.revision_id)] = _query(revision, region)
    return json.dumps({"revisions": queries}) if queries else None


def readable_revisions(configuration: str) -> dict[int, Revision]:
    """Returns the revisions whose files queries can skip, by number, the newest last.

    Args:
        configuration: the table's properties, as JSON.
    """
    revisions = _index(configuration).revisions
    return {n: revisions[n] for n in sorted(revisions) if not revisions[n].is_staging and revisions[n].transformations}


def narrows(configuration: str, revision_id: int, condition: IndexCondition) -> bool:
    """Whether a condition limits the region or the weights of a revision.

    Args:
        configuration: the table's properties, as JSON.
        revision_id: number of a readable revision.
        condition: the condition.
    """
    index = _index(configuration)
    region = Regions(index.revisions[revision_id], index.hash_types.get(revision_id)).region(condition)
    return not region.is_all


def _affordable(revisions: Sequence[Revision], condition: IndexCondition) -> Sequence[Revision]:
    """Returns the newest revisions for which a condition of this size can be evaluated in about a second."""
    size = sum(1 + (len(node.values) if isinstance(node, Comparison) else 0) for node in nodes(condition))
    most = max(1, _MOST_NODES // size)
    if len(revisions) <= most:
        return revisions
    logger.warning(
        "A query with %d conditions skips files of the newest %d of %d revisions only. Use fewer conditions, or "
        "rewrite the files of older revisions (revision_rewrite).",
        size, most, len(revisions),
    )  # fmt: skip
    return sorted(revisions, key=lambda revision: revision.revision_id)[-most:]


def _query(revision: Revision, region: Region) -> dict[str, object]:
    boxes = [
        {
            "first_weight": box.first_weight,
            "last_weight": box.last_weight,
            "lower": [low for low, _ in box.sides],
            "upper": [high for _, high in box.sides],
        }
        for box in region.boxes
    ]
    return {"dimensions": revision.dimensions, "boxes": boxes}
