"""Parsing the table properties, without Spark."""

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from catalog.errors import IndexConfigurationError, InvalidArgumentError, UnknownNameError
from catalog.properties.index_properties import (
    AS_INDEXED_KEY,
    COLUMNS_KEY,
    CUBE_SIZE_KEY,
    IndexConfiguration,
    logical_name,
)
from catalog.properties.target_file_size import DEFAULT_TARGET_FILE_BYTES, TARGET_FILE_BYTES, TARGET_FILE_BYTES_KEY
from catalog.table.snapshot import TableSnapshot
from otree.revision import Revision
from otree.transformation import LinearTransformation
from otree.transformer import Transformer

SCHEMA = StructType(
    [
        StructField("a", LongType()),
        StructField("B", StringType()),
        StructField("day", DateType()),
        StructField("ok", BooleanType()),
        StructField("raw", BinaryType()),
        StructField("list", ArrayType(LongType())),
        StructField("pairs", MapType(StringType(), StringType())),
        StructField("inner", StructType([StructField("x", LongType())])),
        StructField("local", TimestampNTZType()),
        StructField("word", StringType("UNICODE")),
        StructField("new", LongType(), metadata={"delta.columnMapping.physicalName": "col-1"}),
    ]
)


def _of(columns=None, latest=None, partition=(), **more):
    conf = {} if columns is None else {COLUMNS_KEY: columns}
    return IndexConfiguration.of({**conf, **more}, SCHEMA, latest, partition)


def test_a_table_without_properties_has_no_index():
    assert _of() is None


def test_columns_in_any_case_with_their_transformations_and_physical_names():
    found = _of(" A , b:hashing, new:LINEAR")
    assert found.logical_columns == ("a", "B", "new")
    assert found.transformers == (
        Transformer("linear", "a", "LongDataType"),
        Transformer("hashing", "B", "StringDataType"),
        Transformer("linear", "col-1", "LongDataType"),
    )
    assert (found.cube_size, found.target_file_bytes) == (None, DEFAULT_TARGET_FILE_BYTES)
    assert logical_name(SCHEMA, "col-1") == "new"


@pytest.mark.parametrize(
    ("spark_type", "name"),
    [
        (ByteType(), "IntegerDataType"),
        (ShortType(), "IntegerDataType"),
        (IntegerType(), "IntegerDataType"),
        (LongType(), "LongDataType"),
        (FloatType(), "FloatDataType"),
        (DoubleType(), "DoubleDataType"),
        (DecimalType(38, 10), "DecimalDataType"),
        (DateType(), "DateDataType"),
        (TimestampType(), "TimestampDataType"),
        (StringType(), "StringDataType"),
    ],
)
def test_every_supported_type(spark_type, name):
    found = IndexConfiguration.of({COLUMNS_KEY: "c"}, StructType([StructField("c", spark_type)]), None)
    assert found.transformers[0].data_type == name


@pytest.mark.parametrize(
    ("columns", "error", "code", "named"),
    [
        ("", InvalidArgumentError, "USE_INVALID_ARGUMENT", "column names separated by commas"),
        ("a,,day", InvalidArgumentError, "USE_INVALID_ARGUMENT", "column names separated by commas"),
        ("a,", InvalidArgumentError, "USE_INVALID_ARGUMENT", "column names separated by commas"),
        (":linear", InvalidArgumentError, "USE_INVALID_ARGUMENT", "column names separated by commas"),
        ("a,A", InvalidArgumentError, "USE_INVALID_ARGUMENT", "'A' must be named once"),
        ("dya", UnknownNameError, "USE_UNKNOWN_COLUMN", "Did you mean day?"),
        ("col-1", UnknownNameError, "USE_UNKNOWN_COLUMN", "'col-1'"),
        ("a:lineal", UnknownNameError, "USE_UNKNOWN_TRANSFORMATION", "Did you mean linear?"),
        ("a:histogram", InvalidArgumentError, "USE_INVALID_ARGUMENT", "use a:quantiles"),
        ("b:linear", IndexConfigurationError, "USE_UNINDEXABLE_TYPE", "string as linear"),
        ("ok:quantiles", IndexConfigurationError, "USE_UNINDEXABLE_TYPE", "boolean as quantiles"),
        ("raw:quantiles", IndexConfigurationError, "USE_UNINDEXABLE_TYPE", "its transformation is hashing"),
        ("raw:linear", IndexConfigurationError, "USE_UNINDEXABLE_TYPE", "binary as linear"),
        ("list", IndexConfigurationError, "USE_UNINDEXABLE_TYPE", "array<bigint>"),
        ("pairs", IndexConfigurationError, "USE_UNINDEXABLE_TYPE", "map<string,string>"),
        ("inner", IndexConfigurationError, "USE_UNINDEXABLE_TYPE", "struct<x:bigint>"),
        ("word", IndexConfigurationError, "USE_UNINDEXABLE_TYPE", "string collate"),
        ("inner.y", UnknownNameError, "USE_UNKNOWN_COLUMN", "inner.y"),
        ("inner.x.z", UnknownNameError, "USE_UNKNOWN_COLUMN", "inner.x.z"),
        ("inner.x,INNER.X", InvalidArgumentError, "USE_INVALID_ARGUMENT", "must be named once"),
    ],
)
def test_columns_refused(columns, error, code, named):
    with pytest.raises(error) as refused:
        _of(columns)
    assert refused.value.code == code
    assert named.lower() in refused.value.message.lower()


def test_a_partition_column_is_refused():
    with pytest.raises(InvalidArgumentError, match="'day' is a partition column"):
        _of("a,day", partition=("day",))


def test_at_most_sixteen_columns():
    schema = StructType([StructField(f"c{i}", LongType()) for i in range(17)])
    names = [f"c{i}" for i in range(17)]
    assert len(IndexConfiguration.of({COLUMNS_KEY: ",".join(names[:16])}, schema, None).transformers) == 16
    with pytest.raises(InvalidArgumentError, match="at most 16"):
        IndexConfiguration.of({COLUMNS_KEY: ",".join(names)}, schema, None)


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "many", "", "1e3", "9" * 10])
def test_cube_size_refused(text):
    with pytest.raises(InvalidArgumentError, match=r"use\.index\.cubeSize"):
        _of("a", **{CUBE_SIZE_KEY: text})


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), ("134217728", 134_217_728), ("128MB", 128 << 20), (" 2 gb ", 2 << 30), ("5k", 5120), ("7B", 7)],
)
def test_sizes(text, size):
    assert TARGET_FILE_BYTES.parse(text) == size
    assert _of("a", **{TARGET_FILE_BYTES_KEY: text}).target_file_bytes == size


@pytest.mark.parametrize("text", ["0", "-1", "1.5MB", "MB", "", "1 TBB", "0MB"])
def test_sizes_refused(text):
    with pytest.raises(InvalidArgumentError, match=r"use\.index\.targetFileBytes"):
        _of("a", **{TARGET_FILE_BYTES_KEY: text})


def test_a_table_of_another_writer_is_indexed_as_its_newest_revision_says():
    transformers = (Transformer("linear", "col-1", "LongDataType"),)
    space = (LinearTransformation(0, 10, 0, "LongDataType"),)
    latest = Revision(4, 0, "/t", 777, transformers, space)
    found = _of(latest=latest)
    assert (found.transformers, found.logical_columns, found.cube_size) == (transformers, ("new",), 777)
    assert _of("a", latest=latest).cube_size is None
    gone = Revision(4, 0, "/t", 777, (Transformer("linear", "gone", "LongDataType"),), space)
    with pytest.raises(UnknownNameError, match="'gone'"):
        _of(latest=gone)


def _snapshot(configuration, partition=()):
    return TableSnapshot(None, 1, "id", configuration, SCHEMA, partition, 168.0, None)


def test_a_snapshot_reads_its_index_once():
    snapshot = _snapshot({COLUMNS_KEY: "a,b"})
    configuration = snapshot.index_configuration
    assert configuration == IndexConfiguration.of({COLUMNS_KEY: "a,b"}, SCHEMA, None)
    assert snapshot.index_configuration is configuration
    assert snapshot.without(["f"]).index_configuration == configuration
    assert _snapshot({}).index_configuration is None


def test_a_wrong_property_is_an_error_each_time_the_index_is_asked_for():
    snapshot = _snapshot({COLUMNS_KEY: "nowhere"})
    for _ in range(2):
        with pytest.raises(UnknownNameError, match="nowhere"):
            snapshot.index_configuration  # noqa: B018 - read for its error
    with pytest.raises(InvalidArgumentError, match="partition column"):
        _snapshot({COLUMNS_KEY: "a"}, ("a",)).index_configuration  # noqa: B018 - read for its error


@pytest.mark.parametrize(("mapped", "column"), [(True, "a"), (False, "c")])
def test_a_removed_column_mapping_keeps_the_index_on_the_column_that_is_named(mapped, column):
    """Column a was renamed to c, and another column a was added: without the mapping, stored names are the new ones."""
    stored = {"c": "a", "a": "col-2"} if mapped else {"c": "c", "a": "a"}
    metadata = {name: {"delta.columnMapping.physicalName": stored[name]} if mapped else None for name in stored}
    schema = StructType([StructField(name, LongType(), metadata=metadata[name]) for name in stored])
    configuration = {COLUMNS_KEY: "c", AS_INDEXED_KEY: "c"}
    before = IndexConfiguration.of({COLUMNS_KEY: "a"}, StructType([StructField("a", LongType())]), None)
    revision = Revision(1, 0, "t", 1000, before.transformers, ())
    found = IndexConfiguration.of(configuration, schema, revision)
    assert (found.transformers[0].column, found.logical_columns) == (column, ("c",))
