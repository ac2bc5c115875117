"""Log lines written by hand from the facts of the format: read as they are meant, and written back equal."""

import json

import pytest

from otree.block import Block, blocks_from_json, blocks_to_json
from otree.cardinality import WeightCardinality, has_gaps
from otree.errors import IndexFormatError
from otree.revision import Revision, configuration_of, last_revision_id, staging_of, stored_revisions
from otree.transformation import ColumnStats, LegacyZeroTransformation, Transformation
from otree.transformer import make_transformation

TRANSFORM = "io.qbeast.core.transform."
PAIRS = [
    # (column transformer, transformation), class names without the package
    (
        '{"className":"@LinearTransformer","columnName":"i","dataType":"IntegerDataType"}',
        (
            '{"className":"@LinearTransformation","minNumber":0,"maxNumber":999,"nullValue":147,'
            '"orderedDataType":"IntegerDataType"}'
        ),
    ),
    (
        '{"className":"@LinearTransformer","columnName":"f","dataType":"FloatDataType"}',
        (
            '{"className":"@LinearTransformation","minNumber":0.0,"maxNumber":1498.5,"nullValue":460.45932,'
            '"orderedDataType":"FloatDataType"}'
        ),
    ),
    (
        '{"className":"@LinearTransformer","columnName":"t","dataType":"TimestampDataType"}',
        (
            '{"className":"@LinearTransformation","minNumber":1700000000000,"maxNumber":1703596400000,'
            '"nullValue":1702195390485,"orderedDataType":"TimestampDataType"}'
        ),
    ),
    (
        '{"className":"@LinearTransformer","columnName":"no_null_value","dataType":"DoubleDataType"}',
        '{"className":"@LinearTransformation","minNumber":0.0,"maxNumber":1.5,"orderedDataType":"DoubleDataType"}',
    ),
    (
        '{"className":"@LinearTransformer","columnName":"one_value","dataType":"DecimalDataType"}',
        '{"className":"@IdentityTransformation","identityValue":7.0,"orderedDataType":"DecimalDataType"}',
    ),
    (
        '{"className":"@LinearTransformer","columnName":"nulls","dataType":"DateDataType"}',
        '{"className":"@IdentityTransformation","identityValue":null,"orderedDataType":"DateDataType"}',
    ),
    (
        '{"className":"@HashTransformer","columnName":"s","dataType":"StringDataType"}',
        '{"className":"@HashTransformation","nullValue":-1341184382}',
    ),
    (
        '{"className":"@HashTransformer","columnName":"no_null_value","dataType":"LongDataType"}',
        '{"className":"@HashTransformation"}',
    ),
    (
        '{"className":"@CDFNumericQuantilesTransformer","columnName":"n","orderedDataType":"DoubleDataType"}',
        (
            '{"className":"@CDFNumericQuantilesTransformation","quantiles":[0.0,10.0,100.0,1250.0],'
            '"dataType":"DoubleDataType"}'
        ),
    ),
    (
        '{"className":"@CDFStringQuantilesTransformer","columnName":"w"}',
        '{"className":"@CDFStringQuantilesTransformation","quantiles":["s1","s3","s5","s999"]}',
    ),
    (
        '{"className":"@EmptyTransformer","columnName":"e"}',
        '{"className":"@EmptyTransformation"}',
    ),
    # As version 0.7.1 wrote constant and all-null columns.
    (
        '{"className":"@LinearTransformer","columnName":"old","dataType":"IntegerDataType"}',
        '{"className":"@IdentityToZeroTransformation","identityValue":7,"orderedDataType":"IntegerDataType"}',
    ),
    (
        '{"className":"@LinearTransformer","columnName":"old_nulls","dataType":"LongDataType"}',
        '{"className":"@NullToZeroTransformation"}',
    ),
]


def _revision(pairs, number=1, data=True):
    transformers = ",".join(pair[0] for pair in pairs).replace("@", TRANSFORM)
    transformations = ",".join(pair[1] for pair in pairs).replace("@", TRANSFORM) if data else ""
    return (
        f'{{"revisionID":{number},"timestamp":1795248698271,"tableID":"/data/t1","desiredCubeSize":10000,'
        f'"columnTransformers":[{transformers}],"transformations":[{transformations}]}}'
    )


@pytest.mark.parametrize("pair", PAIRS, ids=lambda p: p[1].split('"')[3].lstrip("@"))
def test_every_pair_is_read_and_written_back_equal(pair):
    text = _revision([pair])
    assert Revision.from_json(text).to_json() == text


def test_all_of_them_in_one_table():
    conf = {
        "qbeast.lastRevisionID": "3",
        "qbeast.revision.3": _revision(PAIRS, 3),
        "qbeast.revision.0": _revision([PAIRS[10]], 0),
    }
    others = {"columnsToIndex": "i", "cubeSize": "10000", "columnStats": "", "tableFormat": "delta", "txnappid": "x"}
    stored = stored_revisions({**conf, **others})
    assert stored.unreadable == {}
    revisions = stored.readable
    assert (last_revision_id(conf), list(revisions)) == (3, [0, 3])
    assert configuration_of(revisions.values()) == conf


def test_unknown_fields_are_ignored():
    text = _revision([PAIRS[0]]).replace('"timestamp"', '"author":"someone","timestamp"')
    assert Revision.from_json(text).to_json() == _revision([PAIRS[0]])


def test_staging_in_both_forms():
    """With real transformers and no transformations when a table is created; with empty ones beside revision 1."""
    created = _revision([PAIRS[0], PAIRS[6]], 0, data=False)
    read = Revision.from_json(created)
    assert (read.is_staging, read.columns, read.transformations) == (True, ("i", "s"), ())
    assert read.to_json() == created
    beside = staging_of(Revision.from_json(_revision([PAIRS[0], PAIRS[6]])))
    assert json.loads(beside.to_json()) == {
        "revisionID": 0, "timestamp": 1795248698270, "tableID": "/data/t1", "desiredCubeSize": 10000,
        "columnTransformers": [{"className": TRANSFORM + "EmptyTransformer", "columnName": c} for c in "is"],
        "transformations": [{"className": TRANSFORM + "EmptyTransformation"}] * 2,
    }  # fmt: skip
    assert Revision.from_json(beside.to_json()) == beside


def test_blocks_with_and_without_the_field_of_older_versions():
    text = (
        '[{"cubeId":"ww","minWeight":-1071406827,"maxWeight":2147483647,"elementCount":9316},'
        '{"cubeId":"w","minWeight":-1932703670,"maxWeight":-1071450807,"elementCount":9879}]'
    )
    blocks = (Block("ww", -1071406827, 2147483647, 9316), Block("w", -1932703670, -1071450807, 9879))
    assert blocks_from_json(text) == blocks
    assert blocks_to_json(blocks) == text
    assert blocks_from_json(text.replace('"elementCount"', '"replicated":false,"elementCount"')) == blocks


def test_old_constant_columns_become_ranges():
    one = Revision.from_json(_revision([PAIRS[11]]))
    space = one.transformations[0]
    assert isinstance(space, LegacyZeroTransformation)
    assert (space.coordinate(7), space.coordinate(None), space.interval(3, 9)) == (0.0, 0.0, (0.0, 0.0))
    assert space.covers(ColumnStats(7, 7))
    assert space.covers(ColumnStats(None, None))
    assert not space.covers(ColumnStats(7, 8))
    made: Transformation = make_transformation(one.transformers[0], ColumnStats(8, 9), space)
    assert made.to_json()["minNumber"] == 7


def test_deprecated_histograms_are_refused_by_name():
    text = _revision([PAIRS[9]]).replace("CDFStringQuantilesTransformer", "StringHistogramTransformer")
    with pytest.raises(IndexFormatError, match="StringHistogramTransformer"):
        Revision.from_json(text)


EVERY_PART = (1 << 64) - 1


@pytest.mark.parametrize(
    ("parts", "distinct", "gaps"),
    [
        (EVERY_PART, 1_000_000, False),
        (EVERY_PART & ~1, 1_000_000, True),
        (EVERY_PART & ~1, 2047, False),  # 32 parts of twice the length have weights
        (EVERY_PART & ~3, 2047, True),
        (0x7F, 200, True),  # a sample of 10 % of 2,000 rows
        ((1 << 32) - 1, 64, True),
        ((1 << 32) - 1, 63, False),  # too few to tell
        (0, 0, False),
    ],
)
def test_gaps_in_the_range_of_weights(parts, distinct, gaps):
    assert has_gaps(parts, distinct, -(2**31), 2**31 - 1) == gaps


@pytest.mark.parametrize(
    ("lowest", "highest", "distinct", "gaps"),
    [
        (-(2**31), int(2**32 * 0.49), 200_000, True),  # 99 % of the rows
        (int(2**32 * -0.49), 2**31 - 1, 200_000, True),
        (-(2**31), int(2**32 * 0.49), 3_000, False),  # too few to tell
        (-(2**31) + 21_000, 2**31 - 22_000, 200_000, False),
    ],
)
def test_gaps_at_the_ends_of_the_range(lowest, highest, distinct, gaps):
    assert has_gaps(EVERY_PART, distinct, lowest, highest) == gaps


@pytest.mark.parametrize(
    ("rows", "distinct", "cube_size", "low"),
    [
        (1_000_000, 1_000_000, 1000, False),
        (1_000_000, 999, 1_000_000, True),  # a sample of a per mille is one weight
        (1_000_000, 2000, 400, True),  # a weight holds more than a cube
        (1_000_000, 2000, 600, False),
        (500, 100, 10, False),
        (0, 0, 1000, True),
    ],
)
def test_low_cardinality(rows, distinct, cube_size, low):
    found = WeightCardinality(rows, distinct)
    assert found.is_low(cube_size) == (low and rows > 0)
    assert f"about {distinct} distinct weights for {rows} rows" in found.message
