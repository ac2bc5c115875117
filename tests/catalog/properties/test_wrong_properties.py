"""Properties of a table may hold anything: reading them gives a value or a coded error, never another one."""

import contextlib

from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyspark.sql.types import LongType, StringType, StructField, StructType

from catalog.errors import UseError
from catalog.properties.index_properties import (
    AS_INDEXED_KEY,
    COLUMNS_KEY,
    COMPATIBILITY_KEY,
    CUBE_SIZE_KEY,
    EXTENSIONS_KEY_PREFIX,
    HASH_TYPES_KEY_PREFIX,
    IndexConfiguration,
)
from catalog.properties.optimization_properties import NEWER_FAMILY, OLDER_FAMILY, TRIGGERS, effective_type
from catalog.properties.target_file_size import TARGET_FILE_BYTES_KEY
from otree.errors import IndexFormatError
from otree.revision import LAST_REVISION_KEY, REVISION_KEY_PREFIX, last_revision_id, stored_revisions
from procedures.service.schedule import InvalidSchedule, NoSchedule, Schedule, schedule_of

_WORDS = ("", " ", "true", "TRUE", "null", "nan", "1e400", "-1", "1_0", "１２", "a,,b", "\ud800")
_WORDS += ("{", "{}", "[]", '{"id_min": null}', "id", "id:nothing", "id,id", "`")
_VALUES = st.one_of(
    st.text(max_size=20),
    st.integers().map(str),
    st.floats().map(str),
    st.sampled_from([*_WORDS, "9" * 5000, "9" * 5000 + "kb", "[" * 100_000]),
)
_SCHEMA = StructType([StructField("id", LongType()), StructField("s", StringType())])
_AUTOMATION = (*OLDER_FAMILY, *NEWER_FAMILY, *TRIGGERS, "use.optimization.batch-bytes", "use.optimization.unheard-of")
_INDEX = (
    COLUMNS_KEY,
    AS_INDEXED_KEY,
    f"{HASH_TYPES_KEY_PREFIX}1",
    f"{EXTENSIONS_KEY_PREFIX}1",
    COMPATIBILITY_KEY,
    CUBE_SIZE_KEY,
    TARGET_FILE_BYTES_KEY,
    LAST_REVISION_KEY,
    f"{REVISION_KEY_PREFIX}1",
)
_many = settings(max_examples=200)


@_many
@given(st.dictionaries(st.sampled_from(_AUTOMATION), _VALUES, max_size=5))
@example({"use.optimization.type": "UnindexedFiles", "use.optimization.batch-bytes": "9" * 5000})
def test_those_of_automatic_optimization(configuration):
    assert isinstance(schedule_of(configuration), (Schedule, InvalidSchedule, NoSchedule))
    assert isinstance(effective_type(configuration), (str, type(None)))
    with contextlib.suppress(UseError):
        Schedule.of_table(configuration)
    with contextlib.suppress(UseError):
        Schedule.of_trigger(configuration)


@_many
@given(st.dictionaries(st.sampled_from(_INDEX), _VALUES, max_size=5))
@example({COLUMNS_KEY: "id", TARGET_FILE_BYTES_KEY: "9" * 5000})
@example({COLUMNS_KEY: "id", CUBE_SIZE_KEY: "9" * 5000})
def test_those_of_the_index(configuration):
    with contextlib.suppress(UseError, IndexFormatError):
        IndexConfiguration.of(configuration, _SCHEMA, None, ())
    stored = stored_revisions(configuration)
    texts = [key for key in configuration if key.startswith(REVISION_KEY_PREFIX)]
    assert len(stored.readable) + len(stored.unreadable) == len(texts)
    with contextlib.suppress(IndexFormatError):
        last_revision_id(configuration)
