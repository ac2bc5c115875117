"""Lists of files, as hypothesis draws them: as rows of Delta's log, and as columns in memory."""

import json
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from catalog.files.file_table import FileTable
from catalog.jvm.table_state import LogExtent
from catalog.table.snapshot import TableSnapshot
from otree.cube import CubeId
from otree.revision import Revision, configuration_of
from otree.transformation import LinearTransformation
from otree.transformer import Transformer
from otree.weight import MAX_WEIGHT, MIN_WEIGHT

LOG_SCHEMA = (
    "path string, partitionValues map<string,string>, size bigint, modificationTime bigint, stats string, "
    "tags map<string,string>, "
    "deletionVector struct<storageType:string,pathOrInlineDv:string,offset:int,sizeInBytes:int,cardinality:bigint>"
)
_BLOCK = pa.struct(
    [("cubeId", pa.string()), ("minWeight", pa.int32()), ("maxWeight", pa.int32()), ("elementCount", pa.int64())]
)
COLUMNS = pa.schema(
    [
        ("path", pa.string()),
        ("deletion_vector", pa.string()),
        ("size", pa.int64()),
        ("modification_time", pa.int64()),
        ("rows", pa.int64()),
        ("revision", pa.int64()),
        ("blocks", pa.list_(_BLOCK)),
        ("write_id", pa.string()),
        ("first_time", pa.int64()),
        ("last_time", pa.int64()),
        ("outdated", pa.bool_()),
        ("unreadable", pa.bool_()),
        ("band_first", pa.int64()),
        ("band_end", pa.int64()),
        ("rewrites", pa.float64()),
        ("low", pa.list_(pa.float64())),
        ("high", pa.list_(pa.float64())),
        ("tagged_revision", pa.int64()),
        ("deleted", pa.int64()),
        ("tier", pa.int64()),
        ("partition", pa.string()),
    ]
)


@dataclass(frozen=True)
class ListedFile:
    """A file of a list; ``blocks`` are cube, smallest and largest weight, and rows."""

    path: str
    size: int
    time: int
    revision: int
    write: str | None
    blocks: tuple[tuple[str, int, int, int], ...]
    deleted: int
    known: bool
    band_end: int | None

    @property
    def rows(self):
        return sum(b[3] for b in self.blocks) - self.deleted if self.known else None

    @property
    def vector(self):
        return "u" + self.path if self.deleted else ""

    def of_log(self):
        """As a row of the log."""
        tags = None
        if self.revision:
            blocks = [
                dict(zip(("cubeId", "minWeight", "maxWeight", "elementCount"), b, strict=True)) for b in self.blocks
            ]
            tags = {"revision": str(self.revision), "blocks": json.dumps(blocks)}
            tags |= {"use.write": self.write} if self.write else {}
            tags |= {"use.band": f"0,{self.band_end}"} if self.band_end is not None else {}
            tags |= {"use.rewrites": f"{self.time:.3f}"} if self.time else {}
        ranges = {"minValues": {"x": float(self.time)}, "maxValues": {"x": float(self.time + self.size)}}
        stats = json.dumps({"numRecords": self.rows + self.deleted, **ranges}) if self.known else None
        vector = ("u", self.path, None, 1, self.deleted) if self.deleted else None
        return self.path, {}, self.size, self.time, stats, tags, vector

    def of_columns(self):
        """As a row of ``TableSnapshot.file_rows``."""
        indexed = self.revision > 0
        return {
            "path": self.path,
            "deletion_vector": self.vector,
            "size": self.size,
            "modification_time": self.time,
            "rows": self.rows,
            "revision": self.revision,
            "blocks": [tuple(b) for b in self.blocks] if indexed else None,
            "write_id": (self.write if indexed else None) or self.path,
            "first_time": self.time,
            "last_time": self.time,
            "outdated": False,
            "unreadable": False,
            "band_first": 0 if indexed and self.band_end is not None else None,
            "band_end": self.band_end if indexed else None,
            "rewrites": float(self.time) if indexed else 0.0,
            "low": [float(self.time) if self.known else None, None],
            "high": [float(self.time + self.size) if self.known else None, None],
            "tagged_revision": self.revision if indexed else None,
            "deleted": self.deleted,
            "tier": 0,
            "partition": "",
        }


_WEIGHTS = st.sampled_from([MIN_WEIGHT, -(2**31) + 2**28, -(2**30), 0, 2**30, MAX_WEIGHT])
_COUNTS = st.one_of(st.sampled_from([0, 1, 9, 10, 99, 100, 999, 1000]), st.integers(1, 5000))


@st.composite
def _blocks(draw):
    path = draw(st.lists(st.integers(0, 3), max_size=2))
    low, high = sorted((draw(_WEIGHTS), draw(_WEIGHTS)))
    return CubeId(2, tuple(path)).text, low, high, draw(_COUNTS)


@st.composite
def _files(draw, number):
    blocks = draw(st.lists(_blocks(), min_size=1, max_size=3))
    revision = draw(st.sampled_from([0, 1, 2, 2, 2]))
    rows = sum(b[3] for b in {b[0]: b for b in blocks}.values())
    return ListedFile(
        path=f"part-{number}",
        size=draw(st.sampled_from([10, 10, 200, 3000])),
        time=draw(st.integers(0, 3)),
        revision=revision,
        write=draw(st.sampled_from([None, "w0", "w1", "w2"])),
        # A file holds a cube at most once.
        blocks=tuple({b[0]: b for b in blocks}.values()),
        deleted=draw(st.integers(0, 1)) if rows else 0,
        known=draw(st.sampled_from([True, True, True, False])),
        band_end=draw(st.sampled_from([None, 2**30, MAX_WEIGHT + 1])),
    )


def file_lists(most=12):
    """Lists of unindexed files, and files of two revisions."""
    return st.integers(0, most).flatmap(lambda count: st.tuples(*[_files(n) for n in range(count)]))


def columns_of(files):
    """The columns of listed files."""
    return FileTable.of(rows_of(files))


def rows_of(files):
    """Listed files as rows of ``TableSnapshot.file_rows``, in Arrow."""
    return pa.Table.from_pylist([file.of_columns() for file in files], schema=COLUMNS)


def file_table(count, **columns):
    """Unindexed files f0, f1 and so on of 10 bytes and 5 rows, in the order of these numbers.

    Args:
        count: how many.
        columns: values of columns of ``TableSnapshot.file_rows``, one per file.
    """
    default = ListedFile("", 10, 0, 0, None, (("", 0, 1, 5),), 0, True, None).of_columns()
    rows = []
    for number in range(count):
        of_file = {name: values[number] for name, values in columns.items()}
        rows.append(default | {"path": f"f{number}", "write_id": f"f{number}", "low": [], "high": []} | of_file)
    files = FileTable.of(pa.Table.from_pylist(rows, schema=COLUMNS))
    position = {path: place for place, path in enumerate(files.path.tolist())}
    return files.take(np.array([position[row["path"]] for row in rows], np.int64))


class ListedState:
    """The state of a table that has the rows of a DataFrame as its log."""

    def __init__(self, log_files, count):
        self._log_files = log_files
        self._count = count

    def files(self):
        return self._log_files

    def files_in(self, session):
        return self._log_files

    def extent(self):
        return LogExtent(self._count, 1000 * self._count)

    def listed(self):
        return None


REVISIONS = [
    Revision(
        number,
        0,
        "t",
        1000,
        tuple(Transformer("linear", name, "DoubleDataType") for name in ("x", "y")),
        tuple(LinearTransformation(0.0, float(number), 0.0, "DoubleDataType") for _ in range(2)),
    )
    for number in (1, 2)
]


def snapshot_of(spark, log_files, count, schema):
    """A snapshot whose newest revision is 2."""
    properties = {**configuration_of(REVISIONS), "use.index.columns": "x,y"}
    return TableSnapshot(spark, 1, "t", properties, schema, (), 168.0, ListedState(log_files, count))
