"""What statements may do to properties and columns, without Spark."""

import json

import pytest
from pyspark.sql.types import DateType, IntegerType, LongType, MapType, StringType, StructField, StructType

from catalog.errors import UseError
from catalog.properties.checks import property_errors
from otree.revision import Revision, configuration_of
from otree.transformation import LinearTransformation
from otree.transformer import Transformer
from procedures.service.metadata_changes import TableMetadata, checked_change

COLUMNS, STATS = "use.index.columns", "use.index.columnStats"
NOTHING = TableMetadata({}, StructType())

NO_REVISION = "USE_UNKNOWN_REVISION", "'7'"
_SPACE = (LinearTransformation(0, 9, 3, "IntegerDataType"),)
FIRST_REVISION = Revision(1, 0, "/t", 777, (Transformer("linear", "a", "IntegerDataType"),), _SPACE)
INDEXED = {"use.index.columns": "a", **configuration_of([FIRST_REVISION])}


def _field(name, data_type=None, stored=None):
    return StructField(name, data_type or IntegerType(), metadata={"delta.columnMapping.physicalName": stored or name})


def _schema(*fields):
    return StructType([_field(f) if isinstance(f, str) else f for f in fields])


SCHEMA = _schema("a", _field("day", DateType()), "c", _field("s", _schema("x", "y")), "p")


def _created(schema=SCHEMA, **properties):
    return checked_change(NOTHING, TableMetadata(_keys(properties), schema, ("p",)))


def _keys(properties):
    return {key.replace("__", "-").replace("_", "."): value for key, value in properties.items()}


def _renamed(configuration, schema, before=SCHEMA):
    changes = checked_change(TableMetadata(configuration, before), TableMetadata(configuration, schema))
    return {key: changes.get(key, value) for key, value in configuration.items()}


@pytest.mark.parametrize(
    ("key", "value", "code", "named"),
    [
        ("use.index.colums", "a", "USE_UNKNOWN_PROPERTY", "Did you mean use.index.columns?"),
        ("USE.INDEX.COLUMNS", "a", "USE_UNKNOWN_PROPERTY", "Did you mean use.index.columns?"),
        ("use.index.columnsAsIndexe", "a", "USE_UNKNOWN_PROPERTY", "Did you mean"),
        ("use.index.hashTypes.x", "a", "USE_UNKNOWN_PROPERTY", "use.index.hashTypes.x"),
        ("use.inedx.cubeSize", "1", "USE_UNKNOWN_PROPERTY", "Did you mean use.index.cubeSize?"),
        ("use.team", "mine", "USE_UNKNOWN_PROPERTY", "use.team"),
        ("use.optimization.tpye", "x", "USE_UNKNOWN_PROPERTY", "Did you mean use.optimization.type?"),
        ("use.index.columns", "z", "USE_UNKNOWN_COLUMN", "'z'"),
        ("use.index.columns", "a:lineal", "USE_UNKNOWN_TRANSFORMATION", "Did you mean linear?"),
        ("use.index.columns", "s", "USE_UNINDEXABLE_TYPE", "struct"),
        ("use.index.columns", "p", "USE_INVALID_ARGUMENT", "partition column"),
        ("use.index.columns", "`a", "USE_INVALID_ARGUMENT", "not closed"),
        ("use.index.cubeSize", "abc", "USE_INVALID_ARGUMENT", "use.index.cubeSize = 'abc'"),
        ("use.index.targetFileBytes", "12 apples", "USE_INVALID_ARGUMENT", "'12 apples'"),
        ("use.index.columnStats", '{"z_min": 1}', "USE_UNKNOWN_COLUMN", "'z'"),
        ("use.index.columnStats", '{"a_min": 1}', "USE_INVALID_ARGUMENT", "a_max"),
        ("use.index.onWrite", "yes", "USE_INVALID_ARGUMENT", "true or false"),
        ("use.index.compatibility", "delta", "USE_INVALID_ARGUMENT", "'qbeast', or nothing"),
        ("use.optimization.type", "Leveled", "USE_UNKNOWN_STRATEGY", "Did you mean LeveledCompaction?"),
        ("use.optimization.type", "UnindexedFiles,", "USE_INVALID_ARGUMENT", "separated by commas"),
        ("use.optimization.batch-bytes", "x", "USE_INVALID_ARGUMENT", "use.optimization.batch-bytes"),
        ("use.optimization.bytes-per-iter", "0", "USE_INVALID_ARGUMENT", "at least 1"),
        ("use.optimization.revision-id", "-1", "USE_INVALID_ARGUMENT", "at least 0"),
        ("use.optimization.autoOptimize.enabled", "on", "USE_INVALID_ARGUMENT", "true or false"),
        ("use.optimization.trigger.unindexed-share", "2", "USE_INVALID_ARGUMENT", "at most 1"),
    ],
)
def test_properties_refused(key, value, code, named):
    for before in (NOTHING, TableMetadata({"team": "mine"}, SCHEMA, ("p",))):
        with pytest.raises(UseError) as refused:
            checked_change(before, TableMetadata({**before.configuration, key: value}, SCHEMA, ("p",)))
        assert refused.value.code == code
        assert named in refused.value.message
    # Another engine may have set it: then it is told, and does not stand in the way of other statements.
    if key != "use.optimization.type" or "," in value:
        errors = property_errors({key: value}, SCHEMA, ("p",))
        assert [e.code for e in errors] == ([code] if "batch" not in key else [])
    elsewhere = TableMetadata({key: value}, SCHEMA, ("p",))
    assert checked_change(elsewhere, TableMetadata({key: value, "use.index.cubeSize": "7"}, SCHEMA, ("p",))) == {}
    assert checked_change(elsewhere, TableMetadata({}, SCHEMA, ("p",))) == {}


def test_properties_accepted():
    every = {
        "use.index.columns": "a,s.x:hashing",
        "use.index.cubeSize": "1000",
        "use.index.targetFileBytes": "1MB",
        "use.index.columnStats": '{"a_min": 0, "a_max": 1}',
        "use.index.onWrite": "TRUE",
        "use.index.compatibility": "",
        # As SHOW CREATE TABLE prints them.
        "use.index.columnsAsIndexed": "a",
        "use.index.hashTypes.12": "int",
        "use.index.extensions.12": "{}",
        "use.optimization.type": "UnindexedFiles, LeveledCompaction",
        "use.optimization.batch-bytes": "7",
        "use.optimization.trigger.commits": "3",
        "user.case": "x",
        "delta.appendOnly": "true",
    }
    assert checked_change(NOTHING, TableMetadata(every, SCHEMA, ("p",))) == {}
    # A table at a location brings its columns along.
    assert checked_change(NOTHING, TableMetadata(every, StructType())) == {}


def test_options_of_other_strategies_are_refused_together():
    before = TableMetadata({"use.optimization.batch-bytes": "7"}, SCHEMA)
    with pytest.raises(UseError, match=r"batch-bytes is not an option of LeveledCompaction: unset it"):
        checked_change(
            before, TableMetadata({**before.configuration, "use.optimization.type": "LeveledCompaction"}, SCHEMA)
        )


@pytest.mark.parametrize(
    ("properties", "code", "named"),
    [
        ({"use.optimization.type": "LeveledCompaction"}, "USE_NO_INDEX_COLUMNS", "which LeveledCompaction needs"),
        ({"use.optimization.type": "SizeTieredClustering,UnindexedFiles"}, "USE_NO_INDEX_COLUMNS", "UnindexedFiles"),
        ({"use.optimization.autoOptimize.enabled": "true"}, "USE_NO_INDEX_COLUMNS", "use.index.columns = 'a,b'"),
        ({**INDEXED, "use.optimization.type": "LeveledCompaction", "use.optimization.revision-id": "7"}, *NO_REVISION),
        (
            {
                **INDEXED,
                "use.optimization.autoOptimize.enabled": "true",
                "use.optimization.autoOptimize.revisionId": "7",
            },
            *NO_REVISION,
        ),
    ],
)
def test_what_the_service_could_never_run_is_refused(properties, code, named):
    for before in ({}, {"owner": "x"}):
        with pytest.raises(UseError) as refused:
            checked_change(TableMetadata(before, SCHEMA), TableMetadata({**before, **properties}, SCHEMA))
        assert (refused.value.code, named in refused.value.message) == (code, True), refused.value.message
    # A statement about something else is not to blame.
    after = {**properties, "use.index.targetFileBytes": "1000000"}
    assert checked_change(TableMetadata(properties, SCHEMA), TableMetadata(after, SCHEMA)) == {}


@pytest.mark.parametrize(
    "properties",
    [
        {"use.optimization.type": "SizeTieredClustering,DeleteCompaction,StepConsolidation"},
        {"use.optimization.type": "LeveledCompactionSelection", **INDEXED},
        {"use.optimization.type": "RevisionOptimization", "use.optimization.revision-id": "1", **INDEXED},
        {"use.optimization.type": "UnindexedFilesSelection", "use.optimization.revision-id": "0", **INDEXED},
        {f"use.optimization.autoOptimize.{key}enabled": "true" for key in ("", "stepConsolidation.")},
        {"use.optimization.autoOptimize.enabled": "false"},
    ],
)
def test_what_the_service_can_run_is_accepted(properties):
    assert checked_change(TableMetadata({}, SCHEMA), TableMetadata(properties, SCHEMA)) == {}


def test_a_primary_key_is_ordered_by_another_column():
    key, order = "use.compaction.primaryKey", "use.compaction.orderBy"
    assert checked_change(NOTHING, TableMetadata({key: "a,s.x", order: "c"}, SCHEMA)) == {}
    for ordered_by in ("a", "A", "s.x", "s.`x`"):
        with pytest.raises(UseError, match=r"orderBy.*a column outside of the key"):
            checked_change(NOTHING, TableMetadata({key: "a,s.x", order: ordered_by}, SCHEMA))


def test_a_retention_lengthens_those_of_delta():
    """Delta refuses time travel beyond its own."""
    files, log = "delta.deletedFileRetentionDuration", "delta.logRetentionDuration"

    def changed(hours):
        return checked_change(TableMetadata({}, SCHEMA), TableMetadata({"use.retention.hours": hours}, SCHEMA))

    assert changed("720") == {files: "interval 2592000 seconds"}
    assert changed("1000.5") == {files: "interval 3601800 seconds", log: "interval 3601800 seconds"}
    assert changed("168") == {}
    before = TableMetadata({files: "interval 40 days", log: "interval 1 day"}, SCHEMA)
    after = TableMetadata({**before.configuration, "use.retention.hours": "960"}, SCHEMA)
    assert checked_change(before, after) == {log: "interval 3456000 seconds"}
    assert _created(use_retention_hours="720") == {files: "interval 2592000 seconds"}
    # What is not about retention changes nothing.
    assert checked_change(after, TableMetadata({**after.configuration, "owner": "x"}, SCHEMA)) == {}
    for hours in ("1e300", "nan", "0", "1"):
        with pytest.raises(UseError, match=r"use.retention.hours"):
            changed(hours)


def test_properties_follow_renamed_columns():
    configuration = {
        COLUMNS: "A, s.x:hashing,day",
        "use.index.columnsAsIndexed": "A, s.x:hashing,day",
        STATS: '{"a_min": 0, "a_max": 9, "c_min": 0, "c_max": 1}',
    }
    day = _field("day", DateType())
    found = _renamed(configuration, _schema(_field("a,b", stored="a"), day, "c", _field("s", _schema("x", "y")), "p"))
    assert found[COLUMNS] == found["use.index.columnsAsIndexed"] == "`a,b`,s.x:hashing,day"
    assert json.loads(found[STATS]) == {"`a,b`_min": 0, "`a,b`_max": 9, "c_min": 0, "c_max": 1}
    found = _renamed(configuration, _schema("a", day, "c", _field("t.u", _schema("x", "y"), "s"), "p"))
    assert found[COLUMNS] == "A,`t.u`.x:hashing,day"
    assert found[STATS] == configuration[STATS]
    inner = _field("s", _schema(_field("é", stored="x"), "y"))
    assert _renamed(configuration, _schema("a", day, "c", inner, "p"))[COLUMNS] == "A,s.é:hashing,day"
    # Columns that trade their names.
    swapped = _schema(_field("c", stored="a"), day, _field("a", stored="c"), _field("s", _schema("x", "y")), "p")
    assert _renamed(configuration, swapped)[COLUMNS] == "c,s.x:hashing,day"
    assert json.loads(_renamed(configuration, swapped)[STATS]) == {"c_min": 0, "c_max": 9, "a_min": 0, "a_max": 1}
    # Nothing that is named changed.
    assert _renamed(configuration, _schema(*SCHEMA.fields, "new")) == configuration


def test_an_indexed_column_cannot_be_dropped_and_another_leaves_the_statistics():
    configuration = {COLUMNS: "a,s.x", STATS: '{"a_min": 0, "a_max": 9, "c_min": 0, "c_max": 1}'}
    for rest in (_schema("day", "c", _field("s", _schema("x"))), _schema("a", "c", _field("s", _schema("y")))):
        with pytest.raises(UseError, match=r"use\.index\.columns first, or .* use\.drop_index") as refused:
            _renamed(configuration, rest)
        assert (refused.value.code, refused.value.sql_state) == ("USE_INDEXED_COLUMN", "2BP01")
    found = _renamed(configuration, _schema("a", _field("s", _schema("x"))))
    assert json.loads(found[STATS]) == {"a_min": 0, "a_max": 9}
    assert _renamed({STATS: '{"c_min": 0, "c_max": 1}'}, _schema("a")) == {STATS: None}
    broken = {COLUMNS: "a", STATS: "{"}
    assert _renamed(broken, _schema("a")) == broken


def test_the_columns_of_another_writers_revision_are_kept():
    space = (LinearTransformation(0, 10, 0, "LongDataType"),)
    revision = Revision(1, 0, "/t", 777, (Transformer("linear", "c", "LongDataType"),), space)
    configuration = configuration_of([revision])
    with pytest.raises(UseError, match="indexed by c"):
        _renamed(configuration, _schema("a"))
    assert _renamed(configuration, _schema(_field("d", stored="c"))) == configuration
    # Once other columns are named, the former ones may go.
    assert _renamed({**configuration, COLUMNS: "a"}, _schema("a"))[COLUMNS] == "a"


def test_a_type_that_cannot_be_indexed_is_refused():
    with pytest.raises(UseError) as refused:
        _renamed({COLUMNS: "a"}, _schema(_field("a", MapType(StringType(), StringType()))))
    assert refused.value.code == "USE_UNINDEXABLE_TYPE"
    assert _renamed({COLUMNS: "a"}, _schema(_field("a", LongType()))) == {COLUMNS: "a"}


def test_a_column_that_would_hide_an_indexed_field_is_refused():
    before = _schema(_field("s", _schema("x")))
    hidden = _schema(*before.fields, "s.x")
    for configuration in ({COLUMNS: "s.x"}, {COLUMNS: "s.`x`"}):
        with pytest.raises(UseError, match=r"columns `s\.x` and `s`\.`x` cannot be indexed") as refused:
            _renamed(configuration, hidden, before)
        assert (refused.value.code, refused.value.sql_state) == ("USE_AMBIGUOUS_COLUMN", "42702")
    apart = _schema(*before.fields, _field("s.x", stored="col-7"))
    assert _renamed({COLUMNS: "s.x"}, apart, before) == {COLUMNS: "`s`.`x`"}


@pytest.mark.parametrize("mode", ["none", "name"])
@pytest.mark.parametrize("name", ["`s.x`", "s.x", "s.`x`"])
def test_a_new_table_names_columns_apart_only_with_column_mapping(name, mode):
    configuration = {COLUMNS: name, "delta.columnMapping.mode": mode}
    # Column mapping names columns later.
    inner = StructType([StructField("x", IntegerType())])
    schema = StructType([StructField("s", inner), StructField("s.x", IntegerType())])
    after = TableMetadata(configuration, schema)
    if mode == "none":
        with pytest.raises(UseError, match=r"columns `s\.x` and `s`\.`x` cannot be indexed"):
            checked_change(NOTHING, after)
    else:
        assert checked_change(NOTHING, after) == {}


def test_what_was_wrong_before_is_no_reason_to_refuse():
    wrong = {COLUMNS: "gone", "use.index.cubeSize": "x"}
    assert _renamed(wrong, _schema("a", "more")) == wrong
    with pytest.raises(UseError, match=r"use\.index\.targetFileBytes"):
        checked_change(TableMetadata(wrong, SCHEMA), TableMetadata({**wrong, "use.index.targetFileBytes": "x"}, SCHEMA))


def test_features_that_the_index_forbids_are_refused():
    before = TableMetadata({COLUMNS: "a", "use.index.compatibility": "qbeast"}, SCHEMA)
    after = {**before.configuration, "delta.enableDeletionVectors": "true"}
    with pytest.raises(UseError, match="lose rows"):
        checked_change(before, TableMetadata(after, SCHEMA))
