"""Revisions: an index space over the data, and the table properties that hold them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from otree import format_json
from otree.cardinality import WeightCardinality
from otree.errors import IndexFormatError
from otree.format_json import INT_BOUNDS
from otree.transformation import ColumnStats, EmptyTransformation, Transformation, Value, transformation_from_json
from otree.transformer import EMPTY, Transformer, make_transformation, suits

LAST_REVISION_KEY = "qbeast.lastRevisionID"
REVISION_KEY_PREFIX = "qbeast.revision."
STAGING_REVISION_ID = 0
_WHOLE_NUMBER = re.compile("-?[0-9]{1,18}", re.ASCII)


@dataclass(frozen=True)
class Revision:
    """One index space.

    Attributes:
        revision_id: Number of the revision; 0 is staging, the data not indexed yet.
        timestamp: When it was made, in epoch milliseconds.
        table_id: The table's path as its first writer named it; for display.
        desired_cube_size: Rows that an inner cube should hold.
        transformers: One per indexed column, in index order.
        transformations: One per transformer, or none before the first data.
        weights: Rows and distinct weights of the data that the revision was made for; None when they were not counted.
            An addition of USE to the format, whose readers ignore fields that they do not know.

    Source:
        Index format, sections 3 and 8.
    """

    revision_id: int
    timestamp: int
    table_id: str
    desired_cube_size: int
    transformers: tuple[Transformer, ...]
    transformations: tuple[Transformation, ...]
    weights: WeightCardinality | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        """Refuse a revision whose arrays do not match.

        Raises:
            IndexFormatError: If there are transformations, but not one per transformer.
        """
        if self.transformations and len(self.transformations) != len(self.transformers):
            raise IndexFormatError.of_field(
                "transformations", self.transformations, f"one per transformer ({len(self.transformers)}) or none"
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the indexed columns, in index order."""
        return tuple(transformer.column for transformer in self.transformers)

    @property
    def dimensions(self) -> int:
        """Number of indexed columns."""
        return len(self.transformers)

    @property
    def is_staging(self) -> bool:
        """Whether this is revision 0."""
        return self.revision_id == STAGING_REVISION_ID

    def coordinates(self, values: Sequence[Value]) -> tuple[float, ...]:
        """Return the point of a row.

        Args:
            values: The indexed columns' values in index order, None being null.

        Returns:
            One coordinate in [0, 1] per column.

        Raises:
            ValueError: If there is not one transformation per value.
        """
        pairs = zip(self.transformations, values, strict=True)
        return tuple(transformation.coordinate(value) for transformation, value in pairs)

    def to_json(self) -> str:
        """Return the text of the revision's table property."""
        counted: dict[str, object] = {}
        if self.weights is not None:
            counted["use.weights"] = [self.weights.distinct_weights, self.weights.rows]
            if self.weights.has_gaps:
                counted["use.weightsHaveGaps"] = True
        return format_json.write(
            {
                "revisionID": self.revision_id,
                "timestamp": self.timestamp,
                "tableID": self.table_id,
                "desiredCubeSize": self.desired_cube_size,
                "columnTransformers": [transformer.to_json() for transformer in self.transformers],
                "transformations": [transformation.to_json() for transformation in self.transformations],
                **counted,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> "Revision":
        """Read the text of a revision's table property; unknown fields are ignored.

        Raises:
            IndexFormatError: If a field is missing or wrong, or a class is not known.
        """
        node = format_json.as_object(format_json.parse(text, REVISION_KEY_PREFIX), REVISION_KEY_PREFIX)
        transformers = format_json.as_array(node.get("columnTransformers"), "columnTransformers")
        transformations = format_json.as_array(node.get("transformations"), "transformations")
        return cls(
            revision_id=format_json.whole_field(node, "revisionID"),
            timestamp=format_json.whole_field(node, "timestamp"),
            table_id=format_json.text_field(node, "tableID"),
            desired_cube_size=format_json.whole_field(node, "desiredCubeSize", INT_BOUNDS),
            transformers=tuple(
                Transformer.from_json(format_json.as_object(item, "columnTransformers")) for item in transformers
            ),
            transformations=tuple(
                transformation_from_json(format_json.as_object(item, "transformations")) for item in transformations
            ),
            weights=_weights(node.get("use.weights"), node.get("use.weightsHaveGaps")),
        )


def _weights(node: object, has_gaps: object) -> WeightCardinality | None:
    """Distinct weights and rows; None for anything else, since a value for display only must not stop a reader."""
    counts = node if isinstance(node, list) else []
    if len(counts) != 2 or not all(type(count) is int and count >= 0 for count in counts):
        return None
    return WeightCardinality(rows=counts[1], distinct_weights=counts[0], has_gaps=has_gaps is True)


def staging_of(first: Revision) -> Revision:
    """Return revision 0, which is written together with the first real revision.

    Args:
        first: The first real revision.

    Returns:
        The staging revision of the same columns, one millisecond older.
    """
    return Revision(
        revision_id=STAGING_REVISION_ID,
        timestamp=first.timestamp - 1,
        table_id=first.table_id,
        desired_cube_size=first.desired_cube_size,
        transformers=tuple(Transformer(EMPTY, column, "") for column in first.columns),
        transformations=tuple(EmptyTransformation() for _ in first.columns),
    )


@dataclass(frozen=True)
class StoredRevisions:
    """The revisions among a table's properties.

    Attributes:
        readable: The revisions by number, ascending.
        unreadable: Why each of the others cannot be read, by the key of its property.
    """

    readable: Mapping[int, Revision]
    unreadable: Mapping[str, str]

    @property
    def numbers(self) -> frozenset[int]:
        """Every number that a property stands for, whether or not its text can be read."""
        texts = [key.removeprefix(REVISION_KEY_PREFIX) for key in self.unreadable]
        return frozenset(self.readable) | {int(text) for text in texts if _WHOLE_NUMBER.fullmatch(text)}


def stored_revisions(conf: Mapping[str, str]) -> StoredRevisions:
    """Read the revisions among a table's properties as far as they can be read.

    Args:
        conf: All properties of the table.
    """
    readable: dict[int, Revision] = {}
    unreadable: dict[str, str] = {}
    for key, text in conf.items():
        if key.startswith(REVISION_KEY_PREFIX):
            try:
                revision = Revision.from_json(text)
                if key != f"{REVISION_KEY_PREFIX}{revision.revision_id}":
                    raise IndexFormatError.of_field(
                        "revisionID", revision.revision_id, f"the number in the key '{key}'"
                    )
                readable[revision.revision_id] = revision
            except IndexFormatError as error:
                unreadable[key] = str(error)
    return StoredRevisions(dict(sorted(readable.items())), unreadable)


def last_revision_id(conf: Mapping[str, str]) -> int | None:
    """Return the number of the newest revision, None when the table has no index.

    Raises:
        IndexFormatError: If the property is no whole number.
    """
    text = conf.get(LAST_REVISION_KEY)
    if text is None:
        return None
    if not _WHOLE_NUMBER.fullmatch(text):
        raise IndexFormatError.of_field(LAST_REVISION_KEY, text, "a whole number")
    return int(text)


def newest_revision(conf: Mapping[str, str], stored: StoredRevisions | None = None) -> Revision | None:
    """Return the revision that new rows join.

    Args:
        conf: All properties of the table.
        stored: The revisions among them; read again when left out.

    Returns:
        The newest revision that has a space, None before the first indexing.

    Raises:
        IndexFormatError: If the properties name a newest revision that they do not hold, or that cannot be read. A
            writer must stop, since it would replace that revision.
    """
    newest = last_revision_id(conf)
    if newest is None or newest <= STAGING_REVISION_ID:
        return None
    stored = stored or stored_revisions(conf)
    if newest not in stored.readable:
        key = f"{REVISION_KEY_PREFIX}{newest}"
        reason = stored.unreadable.get(key, f"the property is missing, and {LAST_REVISION_KEY} names it")
        raise IndexFormatError.of_property(key, reason)
    return stored.readable[newest]


def configuration_of(revisions_to_add: Iterable[Revision]) -> dict[str, str]:
    """Return the table properties that add revisions, the highest of them becoming the newest.

    Args:
        revisions_to_add: The revisions; without any, nothing is to be set.

    Returns:
        Property names and values.
    """
    added = list(revisions_to_add)
    conf = {f"{REVISION_KEY_PREFIX}{revision.revision_id}": revision.to_json() for revision in added}
    if added:
        conf[LAST_REVISION_KEY] = str(max(revision.revision_id for revision in added))
    return conf


def next_revision(
    latest: Revision | None,
    transformers: Sequence[Transformer],
    stats: Sequence[ColumnStats],
    desired_cube_size: int,
    timestamp: int,
    table_id: str,
    *,
    renew: bool = False,
) -> Revision:
    """Return the revision that data is to be indexed into.

    Args:
        latest: The newest revision, None when the table has no index yet.
        transformers: How the columns are to be indexed, in index order.
        stats: Range of the data per column, in the transformations' units.
        desired_cube_size: Rows that an inner cube should hold.
        timestamp: Now, in epoch milliseconds.
        table_id: The table's path.
        renew: Make a new revision even where `latest` would suit.

    Returns:
        `latest` itself when it suits, else a new revision numbered one up, with head-room where data left the range.

    Raises:
        ValueError: If there is not one range per transformer.
    """
    if len(stats) != len(transformers):
        raise ValueError(f"Got statistics of {len(stats)} columns for {len(transformers)} transformers")
    if (
        latest is not None
        and not renew
        and not latest.is_staging
        and latest.transformations
        and latest.transformers == tuple(transformers)
        and latest.desired_cube_size == desired_cube_size
        and all(map(suits, latest.transformers, latest.transformations, stats))
    ):
        return latest
    previous: dict[Transformer, Transformation] = {}
    if latest is not None and latest.transformations:
        previous = dict(zip(latest.transformers, latest.transformations, strict=True))
    return Revision(
        revision_id=STAGING_REVISION_ID + 1 if latest is None else latest.revision_id + 1,
        timestamp=timestamp,
        table_id=table_id,
        desired_cube_size=desired_cube_size,
        transformers=tuple(transformers),
        transformations=tuple(
            make_transformation(transformer, replace(seen, now=timestamp), previous.get(transformer))
            for transformer, seen in zip(transformers, stats, strict=True)
        ),
    )
