"""A new transformation is one class and one entry: it is then accepted, made, stored, placed, shown and pruned by."""

import json

import pytest
from parity import EVEN, NULL, ODD, ParityKind, ParityTransformation
from pyspark.sql.types import BooleanType, IntegerType, LongType, StringType, StructField, StructType

from catalog.errors import IndexConfigurationError, UnknownNameError
from catalog.predicates.index_conditions import condition_of_json
from catalog.properties.index_properties import COLUMNS_KEY, COMPATIBILITY_KEY, IndexConfiguration, transformations_of
from catalog.pruning.read_planning import plan_read
from catalog.virtual_tables.spaces import descriptions, value_at
from otree.errors import IndexFormatError
from otree.revision import Revision, configuration_of, next_revision
from otree.transformation import KINDS, ColumnStats
from otree.transformer import Transformer, needs_quantiles
from procedures.layout.file_ranges import ranges_of_files

SCHEMA = StructType([StructField("a", IntegerType()), StructField("b", LongType()), StructField("s", StringType())])


@pytest.fixture
def registered(monkeypatch):
    """The one place where a kind is registered."""
    monkeypatch.setitem(KINDS, "parity", ParityKind())


def _configuration(columns="a:parity,b", **more):
    return IndexConfiguration.of({COLUMNS_KEY: columns, **more}, SCHEMA, None)


def _revision():
    transformers = _configuration().transformers
    return next_revision(None, transformers, (ColumnStats(None, None), ColumnStats(0, 10)), 100, 0, "/t")


def _lower_and_upper(column, operator, *values):
    condition = {"column": column, "type": "int", "operator": operator, "values": list(values)}
    answer = plan_read(json.dumps(configuration_of([_revision()])), condition_of_json(json.dumps(condition)))
    return (
        None
        if answer is None
        else [(box["lower"][0], box["upper"][0]) for box in json.loads(answer)["revisions"]["1"]["boxes"]]
    )


def test_without_its_entry_it_is_unknown():
    with pytest.raises(UnknownNameError, match="no transformation 'parity'"):
        _configuration()
    with pytest.raises(IndexFormatError, match="parity"):
        Transformer("parity", "a", "IntegerDataType")


@pytest.mark.usefixtures("registered")
def test_it_is_accepted_for_the_types_that_it_names():
    assert [t.kind for t in _configuration().transformers] == ["parity", "linear"]
    assert transformations_of(IntegerType()) == ("linear", "hashing", "quantiles", "parity")
    assert "parity" not in transformations_of(BooleanType())
    with pytest.raises(IndexConfigurationError, match="its transformation is hashing or quantiles"):
        _configuration("s:parity")


@pytest.mark.usefixtures("registered")
def test_other_readers_do_not_have_it():
    assert _configuration().extensions == {"a": "int"}
    with pytest.raises(IndexConfigurationError, match="every reader"):
        _configuration(**{COMPATIBILITY_KEY: "qbeast"})


@pytest.mark.usefixtures("registered")
def test_it_is_made_and_stored():
    revision = _revision()
    assert revision.transformations[0] == ParityTransformation()
    assert Revision.from_json(revision.to_json()) == revision
    again = next_revision(revision, revision.transformers, (ColumnStats(None, None), ColumnStats(2, 3)), 100, 1, "/t")
    assert again is revision


@pytest.mark.usefixtures("registered")
def test_nothing_is_read_from_the_data_for_it():
    transformer = _configuration().transformers[0]
    assert not needs_quantiles(transformer, None)
    assert ranges_of_files(['{"numRecords": 1}'], [transformer]) == [ColumnStats(None, None)]


@pytest.mark.usefixtures("registered")
def test_rows_are_placed_and_shown():
    revision = _revision()
    assert revision.coordinates((7, 5)) == (ODD, 0.5)
    assert revision.coordinates((None, 0))[0] == NULL
    assert descriptions(revision) == ["parity of 0 and 1", "linear 0 to 10"]
    assert value_at(revision.transformations[0], EVEN) is None


@pytest.mark.usefixtures("registered")
def test_queries_skip_by_it():
    assert _lower_and_upper("a", "=", 8) == [(EVEN, EVEN)]
    assert _lower_and_upper("a", "in", 7, 9) == [(ODD, ODD)]
    assert _lower_and_upper("a", "<", 8) == [(EVEN, ODD)]
    assert _lower_and_upper("a", "is_null") == [(NULL, NULL)]
