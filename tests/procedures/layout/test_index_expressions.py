"""The row-level expressions of the JVM agree with the pure Python index maths, bit by bit."""

import math
import random
from datetime import date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pytest
from parity import ParityKind, ParityTransformation, parity_coordinate
from placement import DAY

from catalog.errors import IndexUnreadableError
from otree.cube import CubeId
from otree.growth import PlacedRows, grow
from otree.revision import Revision
from otree.transformation import KINDS as KINDS_OF_TRANSFORMATIONS
from otree.transformation import (
    HashTransformation,
    IdentityTransformation,
    LinearTransformation,
    NumericQuantilesTransformation,
    StringQuantilesTransformation,
    Transformation,
    known_transformations,
    transformation_from_json,
)
from otree.transformation.base import CLASS_PREFIX
from otree.transformation.hashing import java_text
from otree.transformer import Transformer
from otree.tree import Tree
from otree.weight import MAX_WEIGHT
from procedures.layout.index_columns import COORDINATES, IndexColumns
from procedures.layout.row_measures import measure_columns

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - local to the session, which is UTC
LONG = (-(2**63), 2**63 - 1)

# name: Spark type, transformer, transformation, values that must be among the rows, a random value
KINDS = {
    "b": ("tinyint", "IntegerDataType", (-128, 127), [-128, 127, 0], lambda r: r.randint(-128, 127)),
    "h": ("smallint", "IntegerDataType", (-300, 300), [-32768, 32767], lambda r: r.randint(-400, 400)),
    "i": ("int", "IntegerDataType", (-1000, 1000), [-(2**31), 2**31 - 1], lambda r: r.randint(-1500, 1500)),
    "l": ("bigint", "LongDataType", LONG, [*LONG, 2**53 + 1], lambda r: r.randint(*LONG)),
    "f": (
        "float",
        "FloatDataType",
        (-1.5, 1e10),
        [math.nan, math.inf, -math.inf, -0.0, 1.401298464324817e-45, 3.4028234663852886e38],
        lambda r: r.uniform(-2, 2),
    ),
    "d": (
        "double",
        "DoubleDataType",
        (-1.0, 1.0),
        [math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.7976931348623157e308],
        lambda r: r.uniform(-1.2, 1.2),
    ),
    "p": (
        "decimal(38,4)",
        "DecimalDataType",
        (-1e10, 1e10),
        [Decimal("9" * 34 + ".9999"), Decimal("-0.0001"), Decimal("0.1000")],
        lambda r: Decimal(r.randint(-(10**15), 10**15)).scaleb(-4),
    ),
    "t": (
        "timestamp",
        "TimestampDataType",
        (-(10**12), 2 * 10**12),
        [EPOCH, EPOCH - timedelta(microseconds=1), EPOCH + timedelta(microseconds=999), datetime(9999, 12, 31, 23)],  # noqa: DTZ001
        lambda r: EPOCH + timedelta(microseconds=r.randint(-(10**16), 2 * 10**15)),
    ),
    "y": (
        "date",
        "DateDataType",
        (-5000 * DAY, 20_000 * DAY),
        [date(1969, 12, 31), date(1, 1, 1), date(9999, 12, 31)],
        lambda r: date(1970, 1, 1) + timedelta(days=r.randint(-10_000, 30_000)),
    ),
    "s": (
        "string",
        "StringDataType",
        None,
        ["", " ", "a", "ab", "abc", "abcd", "abcde", "ä", "日本語", "👩‍🚀", "\x00", "x" * 1000],
        lambda r: "".join(r.choice("abcäß€😀") for _ in range(r.randint(0, 9))),
    ),
    "k": ("int", "IntegerDataType", "constant", [7], lambda r: 7),
    "o": ("boolean", "IntegerDataType", (0, 1), [True, False], lambda r: r.random() < 0.5),
    "n": (
        "timestamp_ntz",
        "TimestampDataType",
        (-(10**12), 2 * 10**12),
        [EPOCH - timedelta(microseconds=1), EPOCH + timedelta(microseconds=999)],
        lambda r: EPOCH + timedelta(microseconds=r.randint(-(10**16), 2 * 10**15)),
    ),
    "u": ("binary", "StringDataType", None, [b"", b"\xff\x00", b"abcde"], lambda r: r.randbytes(r.randint(0, 9))),
}
# The same columns with transformations that are not those of their type.
OTHERS = {
    "hashed": dict.fromkeys("bhildptyon"),
    "quantiles": {
        "b": (-100, -5, 0, 3), "i": (-1000, -1, 0, 7, 900), "l": (-(2**62), -1, 2**53, 2**62), "f": (-1, 0.1, 1),
        "d": (-1.0, -1e-300, 0, 0.25, 0.25, 0.3), "p": (-1e10, 0.1, 7), "t": (-(10**12), 0, 10**12),
        "y": (-5000 * DAY, 0, 20_000 * DAY), "n": (-(10**12), 0, 10**11),
        "s": ("", "aa", "b", "c", "cß", "日本語", "😀"),
    },
}  # fmt: skip


def _revision(names, others=None):
    transformers, spaces = [], []
    for name in names:
        _, data_type, space, _, _ = KINDS[name]
        if others:
            space = others[name]
        if isinstance(space, tuple) and others:
            transformers.append(Transformer("quantiles", name, data_type))
            is_text = data_type == "StringDataType"
            spaces.append(
                StringQuantilesTransformation(space) if is_text else NumericQuantilesTransformation(space, data_type)
            )
            continue
        transformers.append(Transformer("hashing" if space is None else "linear", name, data_type))
        if space is None:
            spaces.append(HashTransformation.for_column(name))
        elif space == "constant":
            spaces.append(IdentityTransformation(7, data_type))
        else:
            middle = (space[0] + space[1]) // 2 if isinstance(space[0], int) else (space[0] + space[1]) / 2
            spaces.append(LinearTransformation(*space, middle, data_type))
    return Revision(1, 0, "/t", 50, tuple(transformers), tuple(spaces))


def _rows(count):
    random_numbers = random.Random(7)
    columns = []
    for _, _, _, extremes, draw in KINDS.values():
        values = [None, *extremes]
        values += [None if random_numbers.random() < 0.05 else draw(random_numbers) for _ in range(count - len(values))]
        columns.append(values)
    return list(zip(*columns, strict=True))


def _plain(value):
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, datetime):
        return (value - EPOCH) // timedelta(milliseconds=1)
    if isinstance(value, date):
        return (value - date(1970, 1, 1)).days * DAY
    return value


def _single(value):
    import struct

    return None if value is None else struct.unpack(">f", struct.pack(">f", value))[0]


@pytest.fixture(scope="module")
def rows(spark):
    data = _rows(400)
    frame = spark.createDataFrame(data, ", ".join(f"{n} {k[0]}" for n, k in KINDS.items())).repartition(2).cache()
    assert frame.count() == len(data)
    yield frame
    frame.unpersist()


@pytest.fixture(params=["compiled", "interpreted"])
def evaluation(request, set_conf):
    compiled = request.param == "compiled"
    set_conf("spark.sql.codegen.wholeStage", str(compiled).lower())
    set_conf("spark.sql.codegen.factoryMode", "CODEGEN_ONLY" if compiled else "NO_CODEGEN")


def _point(revision, names, row):
    values = [_single(row[n]) if n == "f" else _plain(row[n]) for n in names]
    return values, revision.coordinates(values)


def _tree(points, weights, dimensions, depth):
    cells = np.array([CubeId.of_point(point, depth).cell for point in points], np.int64)
    return grow(Tree(dimensions, {}), {}, PlacedRows(np.array(weights, np.int32), cells, depth), 20)


@pytest.mark.parametrize("names", [tuple(KINDS), ("d", "t"), ("s",), ("k", "l", "y")], ids="".join)
def test_coordinates_cells_and_cubes(spark, rows, evaluation, names):
    revision = _revision(names)
    columns = IndexColumns(spark, revision, names)
    depth = min(60 // len(names), 6)
    placed = rows.select(
        *names, columns.weight.alias("w_"), columns.cell(depth).alias("cell_"),
        *[c.alias(f"c{i}_") for i, c in enumerate(columns.coordinates)],
    ).collect()  # fmt: skip
    points = []
    for row in placed:
        values, point = _point(revision, names, row)
        points.append(point)
        assert tuple(row[f"c{i}_"] for i in range(len(names))) == point, values
        assert row["cell_"] == CubeId.of_point(point, depth).cell, values

    weights = [row["w_"] for row in placed]
    tree = _tree(points, weights, len(names), depth)
    assert tree.thresholds
    cubes = [tree.cube_of(point, weight) for point, weight in zip(points, weights, strict=True)]
    ordinals = tree.ordinals()
    found = rows.select(columns.cube(ordinals).alias("cube")).collect()
    assert [ordinals.cube(r.cube)[0] for r in found] == [cube.text for cube in cubes]


@pytest.mark.parametrize("others", OTHERS)
def test_coordinates_of_other_transformations(spark, rows, evaluation, others):
    names = tuple(OTHERS[others])
    revision = _revision(names, OTHERS[others])
    columns = IndexColumns(spark, revision, names)
    for row in rows.select(*names, *[c.alias(f"c{i}_") for i, c in enumerate(columns.coordinates)]).collect():
        values, point = _point(revision, names, row)
        assert tuple(row[f"c{i}_"] for i in range(len(names))) == point, values


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.0, "1.0"), (-0.0, "-0.0"), (0.001, "0.001"), (0.00099, "9.9E-4"), (1e7, "1.0E7"), (9999999.5, "9999999.5"),
        (123.456, "123.456"), (1.5e300, "1.5E300"), (100.0, "100.0"), (math.inf, "Infinity"), (-math.inf, "-Infinity"),
        (math.nan, "NaN"), (-12.0, "-12.0"), (0.5, "0.5"), (1234567.0, "1234567.0"),
        (5e-324, "4.9E-324"), (2e-3, "0.002"),
    ],
)  # fmt: skip
def test_doubles_are_spelled_as_java_does(spark, number, text):
    assert java_text(number) == text == spark._jvm.java.lang.Double.toString(number)


class _Spiral(Transformation):
    """A transformation of a later version, which would not be at 0."""

    def coordinate(self, value):
        return 0.75

    def interval(self, lower, upper):
        return 0.75, 0.75

    def covers(self, stats):
        return True

    def to_json(self):
        return {"className": "Spiral"}

    @classmethod
    def from_json(cls, node):
        return cls()


def test_a_transformation_that_nobody_knows_is_refused(spark):
    """Rows at coordinate 0 would have blocks at 0 too, so that no check could find the mistake."""
    revision = Revision(1, 0, "/t", 50, (Transformer("linear", "l", "LongDataType"),), (_Spiral(),))
    with pytest.raises(IndexUnreadableError, match="column l has a _Spiral"):
        _ = IndexColumns(spark, revision, ("l",)).coordinates


def test_rows_are_placed_by_a_new_transformation(spark, rows, monkeypatch):
    """One file and one entry in each package; see ``tests/catalog/pruning/test_new_transformation.py`` for the rest."""
    monkeypatch.setitem(KINDS_OF_TRANSFORMATIONS, "parity", ParityKind())
    monkeypatch.setitem(COORDINATES, ParityTransformation, parity_coordinate)
    space = ParityTransformation()
    revision = Revision(1, 0, "/t", 50, (Transformer("parity", "i", "IntegerDataType"),), (space,))
    (column,) = IndexColumns(spark, revision, ("i",)).coordinates
    for row in rows.select("i", column.alias("found")).collect():
        assert row.found == space.coordinate(row.i), row


@pytest.mark.parametrize("class_name", known_transformations())
def test_rows_are_placed_by_every_transformation_that_is_read(spark, rows, class_name):
    """The point of each row is that of the transformation itself, which the expressions do not ask."""
    name, node = {
        "Linear": ("l", {"minNumber": -5, "maxNumber": 10**6, "nullValue": 7, "orderedDataType": "LongDataType"}),
        "Hash": ("s", {"nullValue": -13}),
        "Identity": ("k", {"identityValue": 7, "orderedDataType": "IntegerDataType"}),
        "Empty": ("i", {}),
        "CDFNumericQuantiles": ("i", {"quantiles": [-500.0, 0.0, 7.0], "dataType": "IntegerDataType"}),
        "CDFStringQuantiles": ("s", {"quantiles": ["a", "b", "c"]}),
        "IdentityToZero": ("k", {"identityValue": 7}),
        "NullToZero": ("k", {}),
    }[class_name.removeprefix(CLASS_PREFIX).removesuffix("Transformation")]
    space = transformation_from_json({"className": class_name, **node})
    kind = "hashing" if "Hash" in class_name else "quantiles" if "Quantiles" in class_name else "linear"
    revision = Revision(1, 0, "/t", 50, (Transformer(kind, name, KINDS[name][1]),), (space,))
    (column,) = IndexColumns(spark, revision, (name,)).coordinates
    for row in rows.select(name, column.alias("found")).collect():
        assert row.found == space.coordinate(_plain(row[name])), row


def test_a_tree_without_inner_cubes(spark, rows, evaluation):
    columns = IndexColumns(spark, _revision(("d",)), ("d",))
    tree = Tree(1, {})
    assert {r.c for r in rows.select(columns.cube(tree.ordinals()).alias("c")).collect()} == {0}
    assert tree.threshold(CubeId.root(1)) == MAX_WEIGHT


def test_statistics_leave_nan_and_infinities_out(spark, rows):
    names = ("l", "f", "d", "p", "t", "y", "s")
    seen = measure_columns(rows, _revision(names).transformers, names)
    assert seen.weights.rows == 400
    found = dict(zip(names, seen.stats, strict=True))
    assert (found["l"].minimum, found["l"].maximum) == LONG
    assert found["d"].maximum == 1.7976931348623157e308
    assert found["d"].minimum > -2
    assert found["f"].maximum == 3.4028234663852886e38
    assert found["y"].minimum == _plain(date(1, 1, 1))
    assert found["t"].maximum == _plain(datetime(9999, 12, 31, 23))  # noqa: DTZ001
    assert found["s"].span is None
