"""Names of columns as people write them: quoted parts, lists, and the way back to the column."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from catalog.columns.column_names import find_column, find_path, split_names, written_name


def _struct(*names):
    return StructType([StructField(name, IntegerType()) for name in names])


SCHEMA = StructType(
    [
        StructField("a", IntegerType()),
        StructField("a,b", IntegerType()),
        StructField("c.d", IntegerType()),
        StructField("e:f", StringType()),
        StructField("we`ird", IntegerType()),
        StructField("s", _struct("x", "y.z")),
        StructField("c", _struct("d")),
        StructField(" padded", IntegerType()),
    ]
)


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("a, b:hashing", [("a", ""), ("b", "hashing")]),
        ("`a,b`:linear,`c.d`,`e:f`:hashing", [("`a,b`", "linear"), ("`c.d`", ""), ("`e:f`", "hashing")]),
        (" s.`x,y` : linear ,q", [("s.`x,y`", "linear"), ("q", "")]),
        ("we`ird,c", [("we`ird", ""), ("c", "")]),
        ("`a``,b`,c", [("`a``,b`", ""), ("c", "")]),
        ("a,", [("a", ""), ("", "")]),
        ("", [("", "")]),
    ],
)
def test_lists_are_split_outside_backquotes(text, entries):
    assert split_names(text) == entries


@pytest.mark.parametrize("text", ["`a,b", "a,`b``", "s.`x"])
def test_an_open_backquote_is_refused(text):
    with pytest.raises(ValueError, match="not closed"):
        split_names(text)


@pytest.mark.parametrize("text", ["a:", "b,a: ,c", "`a:b`:"])
def test_a_colon_without_a_transformation_is_refused(text):
    with pytest.raises(ValueError, match="missing after the colon"):
        split_names(text)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("A", ("a",)),
        ("`A`", ("a",)),
        ("`a,b`", ("a,b",)),
        ("c.d", ("c.d",)),
        ("`c`.`d`", ("c", "d")),
        ("c.`d`", ("c", "d")),
        ("`c.d`", ("c.d",)),
        ("`we``ird`", ("we`ird",)),
        ("we`ird", ("we`ird",)),
        ("S.`Y.Z`", ("s", "y.z")),
        ("s.x", ("s", "x")),
        ("` padded`", (" padded",)),
    ],
)
def test_quoted_and_plain_names_lead_to_columns(name, path):
    assert find_column(SCHEMA, name).path == path


@pytest.mark.parametrize("name", ["`b`", "`s`.q", "`a`.x", "`a`b", "``", "`a", "s.`x`.y", "`a`."])
def test_names_of_no_column(name):
    assert find_column(SCHEMA, name) is None


_NAMES = st.text(st.sampled_from("ab.,:` *"), min_size=1, max_size=4)


@given(st.lists(_NAMES, min_size=1, max_size=4), st.lists(_NAMES, min_size=1, max_size=3))
def test_what_is_shown_can_be_pasted(top, nested):
    def unlike(names):
        return list({name.lower(): name for name in names}.values())

    fields = [*_struct(*unlike(top)).fields, StructField("nest", _struct(*unlike(nested)))]
    schema = StructType(fields)
    paths = [(field.name,) for field in fields[:-1]] + [("nest", field.name) for field in fields[-1].dataType.fields]
    columns = [find_path(schema, path) for path in paths]
    text = ",".join(f"{written_name(schema, column)}:linear" for column in columns)
    entries = split_names(text)
    assert [find_column(schema, name).path for name, _ in entries] == paths
    assert {kind for _, kind in entries} == {"linear"}
