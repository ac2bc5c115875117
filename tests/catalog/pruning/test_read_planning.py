"""What queries may skip: whatever a condition keeps must lie inside the box, without Spark."""

import itertools
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.errors import TooComplexError
from catalog.predicates.index_conditions import condition_of_json
from catalog.predicates.operators import after_prefix
from catalog.properties.index_properties import HASH_TYPES_KEY_PREFIX, hash_type
from catalog.pruning.read_planning import plan_read, plan_sample
from otree.region import Region
from otree.revision import Revision, configuration_of
from otree.transformation import HashTransformation, IdentityTransformation, LinearTransformation
from otree.transformer import Transformer
from otree.weight import MAX_WEIGHT, MIN_WEIGHT, fraction_of

DAY = 86_400_000

COLUMNS = {
    "whole": Transformer("linear", "whole", "IntegerDataType"),
    "long": Transformer("linear", "long", "LongDataType"),
    "real": Transformer("linear", "real", "DoubleDataType"),
    "price": Transformer("linear", "price", "DecimalDataType"),
    "day": Transformer("linear", "day", "DateDataType"),
    "time": Transformer("linear", "time", "TimestampDataType"),
    "name": Transformer("hashing", "name", "StringDataType"),
    "same": Transformer("linear", "same", "LongDataType"),
}
SPACES = {
    "whole": LinearTransformation(-100, 100, 3, "IntegerDataType"),
    "long": LinearTransformation(-(2**60), 2**60, 0, "LongDataType"),
    "real": LinearTransformation(-5.5, 7.25, 0.0, "DoubleDataType"),
    "price": LinearTransformation(-10.0, 1000.0, 0.0, "DecimalDataType"),
    "day": LinearTransformation(-1000 * DAY, 1000 * DAY, 0, "DateDataType"),
    "time": LinearTransformation(0, 1_700_000_000_000, 0, "TimestampDataType"),
    "name": HashTransformation(1),
    "same": IdentityTransformation(7, "LongDataType"),
}
NAMES = tuple(COLUMNS)
TYPES = {
    "whole": "int",
    "long": "bigint",
    "real": "double",
    "price": "decimal(12,2)",
    "day": "date",
    "time": "timestamp",
    "name": "string",
    "same": "bigint",
}


def _revision(number=1, names=NAMES):
    return Revision(number, 0, "/t", 100, tuple(COLUMNS[n] for n in names), tuple(SPACES[n] for n in names))


def _hash_types(revision):
    return ";".join(hash_type(TYPES.get(name, "float")) for name in revision.columns)


def _conf(*revisions):
    made = revisions or [_revision()]
    types = {f"{HASH_TYPES_KEY_PREFIX}{r.revision_id}": _hash_types(r) for r in made}
    return json.dumps({**configuration_of(made), **types})


def _all(*conditions):
    return {"operator": "and", "of": list(conditions)}


def _any(*conditions):
    return {"operator": "or", "of": list(conditions)}


def _not(condition):
    return {"operator": "not", "of": [condition]}


def _boxes(condition, conf=None):
    """The boxes of each revision, None where everything is read."""
    answer = plan_read(conf or _conf(), condition_of_json(json.dumps(condition)))
    return None if answer is None else {n: query["boxes"] for n, query in json.loads(answer)["revisions"].items()}


def _plan(*conditions, conf=None):
    """The one box around the boxes of each revision; None where everything is read."""
    found = _boxes(_all(*conditions), conf)
    return None if found is None else {number: _around(boxes) for number, boxes in found.items()}


def _around(boxes):
    return {
        "first_weight": min(box["first_weight"] for box in boxes),
        "last_weight": max(box["last_weight"] for box in boxes),
        "lower": [min(lows) for lows in zip(*(box["lower"] for box in boxes), strict=True)],
        "upper": [max(highs) for highs in zip(*(box["upper"] for box in boxes), strict=True)],
    }


def _condition(column, operator, *values, sql_type=None):
    return {"column": column, "type": sql_type or TYPES[column], "operator": operator, "values": list(values)}


# A value as Spark's literal spells it in JSON, and the same in the unit of the index.
_times = st.integers(-(10**15), 2 * 10**15)
VALUES = {
    "whole": st.integers(-150, 150).map(lambda v: (v, v)),
    "long": st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-5, 5)).map(lambda v: (v, v)),
    "real": st.floats(allow_nan=False, width=64).map(lambda v: (_java(v), v)),
    "price": st.decimals(-5000, 5000, places=2, allow_nan=False).map(lambda v: (str(v), v)),
    "day": st.integers(-1500, 1500).map(lambda v: (v, v * DAY)),
    "time": _times.map(lambda v: (v, v)),
    "name": st.text(max_size=4).map(lambda v: (v, v)),
    "same": st.integers(5, 9).map(lambda v: (v, v)),
}


def _java(value):
    return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, repr(value))


def _coordinate(column, value):
    # A row's microseconds are cut to whole milliseconds.
    return SPACES[column].coordinate(value // 1000 if column == "time" else value)


def _holds(value, operator, bounds):
    match operator:
        case "=" | "in":
            return value in bounds
        case "<":
            return value < bounds[0]
        case "<=":
            return value <= bounds[0]
        case ">":
            return value > bounds[0]
        case _:
            return value >= bounds[0]


@pytest.mark.parametrize("column", NAMES)
@pytest.mark.parametrize("operator", ["=", "<", "<=", ">", ">=", "in"])
def test_a_value_that_meets_the_condition_lies_in_the_box(column, operator):
    @given(st.lists(VALUES[column], min_size=1, max_size=3), st.lists(VALUES[column], max_size=4))
    def check(bounds, others):
        bounds = bounds if operator == "in" else bounds[:1]
        plan = _plan(_condition(column, operator, *(spelled for spelled, _ in bounds)))
        if plan is None:
            return
        dimension = NAMES.index(column)
        low, high = plan["1"]["lower"][dimension], plan["1"]["upper"][dimension]
        exact = [value for _, value in bounds]
        for _, value in [*others, *bounds]:
            if _holds(value, operator, exact):
                assert low <= _coordinate(column, value) <= high
        for other, (start, end) in enumerate(zip(plan["1"]["lower"], plan["1"]["upper"], strict=True)):
            assert other == dimension or (start, end) in {(0.0, 1.0), (0.0, 0.0)}

    check()


@pytest.mark.parametrize("hours", [-12, 0, 14])
def test_a_time_compared_with_a_day_lies_in_the_box_in_every_zone(hours):
    """``CAST(time AS DATE) = day``: the day begins ``hours`` before that of UTC."""
    condition = {**_condition("time", "=", 5000), "as": "date"}
    plan = _plan(condition)["1"]
    low, high = (plan[end][NAMES.index("time")] for end in ("lower", "upper"))
    begin = 5000 * DAY - hours * 3_600_000
    assert 0.0 < low <= SPACES["time"].coordinate(begin)
    assert SPACES["time"].coordinate(begin + DAY - 1) <= high < 1.0


def test_a_long_list_in_any_order_keeps_its_smallest_and_largest_value():
    values = [*range(-50, 50), *range(-90, -80), *range(60, 90)] * 10
    plan = _plan(_condition("whole", "in", *values))
    low, high = plan["1"]["lower"][0], plan["1"]["upper"][0]
    assert low <= _coordinate("whole", -90) < _coordinate("whole", 89) <= high
    assert (low, high) != (0.0, 1.0)


def test_nan_is_greater_than_every_number_and_equal_to_itself():
    place = SPACES["real"].coordinate(math.nan)
    for condition in [
        _condition("real", ">", "1.0"),
        _condition("real", ">=", "NaN"),
        _condition("real", "=", "NaN"),
        _condition("real", "in", "NaN", "1.0"),
        _condition("real", ">", "Infinity"),
    ]:
        plan = _plan(condition)
        if plan is not None:
            assert plan["1"]["lower"][2] <= place <= plan["1"]["upper"][2], condition
    for value in (-math.inf, -1e300, 0.0, 1e300, math.inf):
        plan = _plan(_condition("real", "<", "NaN"))
        assert plan is None or plan["1"]["lower"][2] <= _coordinate("real", value) <= plan["1"]["upper"][2]


@pytest.mark.parametrize("single", [0.1, 16_777_217.0, 3.4e38])
def test_a_single_compared_with_a_double(single):
    revision = Revision(
        1,
        0,
        "/t",
        100,
        (Transformer("linear", "f", "FloatDataType"),),
        (LinearTransformation(0.0, 2.0e7, 0.0, "FloatDataType"),),
    )
    plan = _plan(_condition("f", "=", repr(single), sql_type="float"), conf=_conf(revision))
    place = revision.transformations[0].coordinate(single)
    assert plan is None or plan["1"]["lower"][0] <= place <= plan["1"]["upper"][0]


def test_conditions_narrow_each_other():
    plan = _plan(_condition("whole", ">=", 0), _condition("whole", "<", 50), _condition("real", "<=", "1.0"))
    assert plan["1"]["lower"][0] == 0.5
    assert plan["1"]["upper"][0] == pytest.approx(0.75)
    assert plan["1"]["upper"][2] == _coordinate("real", 1.0)


@pytest.mark.parametrize(
    "condition",
    [
        _condition("other", "=", 1, sql_type="int"),
        _condition("whole", "=", "x", sql_type="string"),
        _condition("name", "=", 1, sql_type="int"),
        _condition("whole", "=", 1, sql_type="timestamp_ntz"),
        _condition("real", "=", 1, sql_type="int"),
        _condition("name", "<", "m"),
        {"operator": "unknown"},
    ],
)
def test_what_the_index_cannot_answer_skips_nothing(condition):
    plan = _plan(condition, conf=_conf(_revision(names=NAMES[:-1])))
    assert plan is None


def test_a_point_of_a_hash_is_a_point():
    plan = _plan(_condition("name", "=", "bob"))
    at = NAMES.index("name")
    assert plan["1"]["lower"][at] == plan["1"]["upper"][at] == SPACES["name"].coordinate("bob")


@pytest.mark.parametrize(
    ("operator", "value", "expected"),
    [
        (">=", 5, (5, MAX_WEIGHT)),
        (">", 5, (6, MAX_WEIGHT)),
        ("<=", 5, (MIN_WEIGHT, 5)),
        ("<", 5, (MIN_WEIGHT, 4)),
        ("=", 5, (5, 5)),
    ],
)
def test_weights(operator, value, expected):
    types = [TYPES[n] for n in NAMES]
    plan = _plan({"hash_of": list(NAMES), "types": types, "operator": operator, "values": [value]})
    assert (plan["1"]["first_weight"], plan["1"]["last_weight"]) == expected


def test_a_hash_of_other_columns_or_widened_types_skips_nothing():
    types = [TYPES[n] for n in NAMES]
    swapped = {"hash_of": list(reversed(NAMES)), "types": list(reversed(types)), "operator": "<", "values": [5]}
    widened = {"hash_of": list(NAMES), "types": ["bigint", *types[1:]], "operator": "<", "values": [5]}
    short = {"hash_of": ["whole"], "types": ["int"], "operator": "<", "values": [5]}
    conf = _conf(_revision(names=NAMES[:-1]))
    for condition in (swapped, widened, short):
        assert _plan(condition, conf=conf) is None


@pytest.mark.parametrize("today", ["decimal(20,2)", "decimal(12,4)"])
def test_a_widened_decimal_weighs_differently(today):
    condition = {"hash_of": ["price"], "operator": "<", "values": [5]}
    conf = _conf(_revision(names=("price",)))
    assert _plan({**condition, "types": ["decimal(12,2)"]}, conf=conf) is not None
    assert _plan({**condition, "types": ["decimal(14,2)"]}, conf=conf) is not None
    assert _plan({**condition, "types": [today]}, conf=conf) is None


def test_decimals_of_another_writer_are_not_pruned_by_weight():
    conf = json.dumps(configuration_of([_revision(names=("price",))]))
    assert _plan({"hash_of": ["price"], "types": ["decimal(12,2)"], "operator": "<", "values": [5]}, conf=conf) is None
    conf = json.dumps(configuration_of([_revision(names=("whole",))]))
    assert _plan({"hash_of": ["whole"], "types": ["smallint"], "operator": "<", "values": [5]}, conf=conf)["1"]


def test_each_revision_has_its_own_box_and_the_staging_one_has_none():
    first, second = _revision(1, ("whole",)), _revision(2, ("real", "whole"))
    staging = Revision(0, 0, "/t", 100, first.transformers, ())
    plan = _plan(_condition("whole", ">", 0), conf=_conf(staging, first, second))
    assert set(plan) == {"1", "2"}
    assert plan["1"]["lower"] == [0.5]
    assert plan["2"]["lower"] == [0.0, 0.5]


def test_no_condition_of_use_gives_no_plan():
    assert _boxes({"operator": "all"}, _conf(_revision(names=("whole",)))) is None
    assert _boxes(_condition("whole", "=", 1), "{}") is None


# ------------------------------------------------------------------------------------------------ samples


@given(st.floats(0, 1), st.floats(0, 1), st.integers(MIN_WEIGHT, MAX_WEIGHT))
def test_a_sample_takes_the_rows_of_its_fractions(lower, upper, weight):
    answer = json.loads(plan_sample(_conf(), lower, upper))
    assert answer["columns"] == list(NAMES)
    first = MIN_WEIGHT if answer["first"] is None else answer["first"]
    last = MAX_WEIGHT if answer["last"] is None else answer["last"]
    inside = first <= weight <= last
    fraction = fraction_of(weight)
    slack = 2.0**-31
    if inside:
        assert lower - slack <= fraction <= upper + slack
    elif lower + slack < upper:
        assert fraction <= lower + slack or fraction >= upper - slack


def test_all_rows_and_no_row():
    everything = json.loads(plan_sample(_conf(), 0.0, 1.0))
    assert (everything["first"], everything["last"]) == (None, None)
    nothing = json.loads(plan_sample(_conf(), 0.0, 0.0))
    assert nothing["first"] > nothing["last"]


def test_shares_of_a_split_hold_each_row_once():
    bounds = [json.loads(plan_sample(_conf(), low, high)) for low, high in [(0, 0.25), (0.25, 0.7), (0.7, 1)]]
    assert bounds[0]["first"] is None
    assert bounds[2]["last"] is None
    assert bounds[1]["first"] == bounds[0]["last"] + 1
    assert bounds[2]["first"] == bounds[1]["last"] + 1


def test_a_table_without_index_is_sampled_by_spark():
    staging = Revision(0, 0, "/t", 100, (COLUMNS["whole"],), ())
    for conf in ("{}", _conf(staging)):
        assert json.loads(plan_sample(conf, 0.0, 0.5))["reason"] == "NOT_INDEXED"


# -------------------------------------------------------------------------------------------- trees of conditions

TREES = ("whole", "real", "name")


def _java_or_none(column, value):
    return None if value is None else _java(value) if column == "real" else value


def _rows_of(column):
    values = {"whole": st.integers(-120, 120), "real": st.floats(width=64), "name": st.text(max_size=2)}[column]
    return st.one_of(st.none(), values)


def _leaf(column):
    operators = ["=", "<=>", "<", "<=", ">", ">=", "in", "is_null", "is_not_null"]
    if column == "name":
        operators.append("starts_with")

    def make(drawn):
        operator, values = drawn
        count = {"is_null": 0, "is_not_null": 0, "in": len(values)}.get(operator, 1)
        return {"exact": values[:count], **_condition(column, operator, *values[:count])}

    return st.tuples(st.sampled_from(operators), st.lists(_rows_of(column), min_size=1, max_size=3)).map(make)


_trees = st.recursive(
    st.one_of(*(_leaf(column) for column in TREES), st.just({"operator": "unknown"})),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda of: _all(*of)),
        st.lists(inner, min_size=1, max_size=3).map(lambda of: _any(*of)),
        inner.map(_not),
    ),
    max_leaves=8,
)


def _rank(value):
    """Spark's order of doubles: NaN is equal to itself and above all others."""
    return (value != value, 0.0 if value != value else value) if isinstance(value, float) else value


def _truths(node, row):
    """What SQL may say of the row, as a set of True, False and None; "unknown" may be anything."""
    operator = node["operator"]
    if operator == "unknown":
        return {True, False, None}
    if operator == "not":
        return {None if inner is None else not inner for inner in _truths(node["of"][0], row)}
    if operator in ("and", "or"):
        decisive = operator == "or"
        return {
            decisive if decisive in parts else None if None in parts else not decisive
            for parts in itertools.product(*(_truths(part, row) for part in node["of"]))
        }
    return {_truth(node, row)}


def _truth(node, row):
    """What SQL says of a comparison: True, False or None."""
    operator = node["operator"]
    value, others = row[node["column"]], node["exact"]
    if operator in ("is_null", "is_not_null"):
        return (value is None) == (operator == "is_null")
    if operator == "<=>":
        return (value is None and others[0] is None) or (
            value is not None and others[0] is not None and _rank(value) == _rank(others[0])
        )
    if value is None or (operator != "in" and others[0] is None):
        return None
    if operator == "in":
        hit = any(o is not None and _rank(o) == _rank(value) for o in others)
        return True if hit else None if None in others else False
    left, right = _rank(value), _rank(others[0])
    if operator == "starts_with":
        return value.startswith(others[0])
    return {"=": left == right, "<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[
        operator
    ]


def _spelled(node):
    """The tree as the shim sends it."""
    if "of" in node:
        return {**node, "of": [_spelled(part) for part in node["of"]]}
    if "exact" not in node:
        return node
    values = [_java_or_none(node["column"], value) for value in node["exact"]]
    return {**{k: v for k, v in node.items() if k != "exact"}, "values": values}


@given(_trees, st.lists(st.fixed_dictionaries({c: _rows_of(c) for c in TREES}), min_size=1, max_size=5))
@settings(max_examples=400)
def test_a_row_that_meets_a_tree_lies_in_one_of_its_boxes(tree, rows):
    boxes = _boxes(_spelled(tree), _conf(_revision(names=TREES)))
    if boxes is None:
        return
    for row in rows:
        if True in _truths(tree, row):
            point = [SPACES[c].coordinate(row[c]) for c in TREES]
            assert any(
                all(low <= x <= high for low, x, high in zip(box["lower"], point, box["upper"], strict=True))
                for box in boxes["1"]
            ), row


def test_alternatives_are_boxes_of_their_own():
    tree = _any(
        _all(_condition("whole", "<", -50), _condition("real", "<", "0.0")),
        _all(_condition("whole", ">", 50), _condition("real", ">", "5.0")),
    )
    boxes = _boxes(tree, _conf(_revision(names=("whole", "real"))))["1"]
    assert len(boxes) == 2
    assert boxes[0]["upper"][0] < boxes[1]["lower"][0]
    assert _boxes(_any(tree, {"operator": "unknown"})) is None


def test_a_list_skips_what_lies_between_its_values():
    boxes = _boxes(_condition("whole", "in", -90, 90), _conf(_revision(names=("whole",))))["1"]
    points = [[SPACES["whole"].coordinate(value)] for value in (-90, 90)]
    assert [(box["lower"], box["upper"]) for box in boxes] == [(point, point) for point in points]
    names = _boxes(_condition("name", "in", "a", "b", None), _conf(_revision(names=("name",))))["1"]
    assert {box["lower"][0] for box in names} == {SPACES["name"].coordinate(text) for text in "ab"}


@pytest.mark.parametrize("count", [100, 5000])
def test_boxes_stay_few(count):
    values = range(-(2**59), 2**59, 2**60 // count)
    boxes = _boxes(_condition("long", "in", *values), _conf(_revision(names=("long",))))["1"]
    assert len(boxes) <= 64
    for value in values:
        assert any(box["lower"][0] <= _coordinate("long", value) <= box["upper"][0] for box in boxes)
    tree = _any(*(_all(_condition("long", "=", v), _condition("whole", "=", v % 7)) for v in list(values)[:100]))
    boxes = _boxes(tree, _conf(_revision(names=("long", "whole"))))["1"]
    assert len(boxes) <= 64


@pytest.mark.parametrize(
    "never",
    [
        _condition("whole", "=", None),
        _condition("whole", "in", None),
        _not(_condition("whole", "<", None)),
        _all(_condition("whole", "<", -10), _condition("whole", ">", 10)),
        {"operator": "never"},
    ],
)
def test_a_condition_that_no_row_meets_leaves_no_box(never):
    assert _boxes(never)["1"] == []


def test_nulls_have_a_place():
    box = _boxes(_condition("whole", "is_null"), _conf(_revision(names=("whole",))))["1"][0]
    assert box["lower"] == box["upper"] == [SPACES["whole"].null_coordinate]
    cast = {**_condition("whole", "is_null"), "as": "bigint"}
    assert _boxes(cast, _conf(_revision(names=("whole",)))) is None


@pytest.mark.parametrize(
    ("column", "sql_type", "compared_as", "value", "skips"),
    [
        ("whole", "int", "bigint", 17, True),
        ("whole", "int", "double", "17.5", True),
        ("whole", "int", "float", "16777216.0", True),
        ("whole", "int", "decimal(12,2)", "17.00", True),
        ("whole", "int", "smallint", 17, False),
        ("whole", "int", "string", "17", False),
        ("long", "bigint", "int", 17, False),
        ("long", "bigint", "double", "1.0E16", True),
        ("long", "bigint", "double", "1.0E15", True),
        ("real", "double", "float", "1.5", False),
        ("price", "decimal(12,2)", "double", "1.5", True),
        ("price", "decimal(12,2)", "decimal(14,4)", "1.5000", True),
        ("price", "decimal(12,2)", "decimal(14,1)", "1.5", False),
        ("day", "date", "timestamp", 0, True),
        ("time", "timestamp", "date", 3, True),
        ("time", "timestamp", "string", "x", False),
        ("name", "string", "int", 3, False),
        ("name", "string collate UTF8_LCASE", "string collate UTF8_LCASE", "a", False),
    ],
)
def test_only_casts_that_keep_the_order_skip(column, sql_type, compared_as, value, skips):
    condition = {**_condition(column, "=", value, sql_type=sql_type), "as": compared_as}
    assert (_boxes(condition, _conf(_revision(names=(column,)))) is not None) == skips


def test_a_prefix_is_a_range_of_texts():
    for prefix in ("a", "aé", "x\ud7ff", "\U0010ffff", "a\U0010ffff", "퟿"):
        end = after_prefix(prefix)
        for tail in ("", "a", "\U0010ffff" * 3):
            assert end is None or prefix + tail <= end
        assert end is None or not end.startswith(prefix)


# ------------------------------------------------------------ null-safe comparisons, rounding, unknown nulls


def _flag(null_value, space=LinearTransformation):
    transformation = space(0, 1, null_value, "IntegerDataType")
    return Revision(1, 0, "/t", 100, (Transformer("linear", "flag", "IntegerDataType"),), (transformation,))


def _sides(condition, revision):
    boxes = _boxes(condition, json.dumps(configuration_of([revision])))
    return None if boxes is None else [(box["lower"][0], box["upper"][0]) for box in boxes["1"]]


def test_not_over_a_null_safe_comparison_keeps_nulls():
    def same(value):
        return {"column": "flag", "type": "boolean", "operator": "<=>", "values": [value]}

    assert _sides(_not(same(False)), _flag(0)) == [(0.0, 0.0), (1.0, 1.0)]
    assert _sides(_not(same(True)), _flag(1)) == [(0.0, 0.0), (1.0, 1.0)]
    assert _sides(_not(same(True)), _flag(0)) == [(0.0, 0.0)]
    assert _sides(_not(_not(same(True))), _flag(0)) == [(1.0, 1.0)]
    assert _sides(_not(same(None)), _flag(0)) is None
    assert _sides(_not({**same(1), "type": "int"}), _flag(0)) is None


def test_a_null_may_be_anywhere_when_its_place_was_not_recorded():
    null = {"column": "flag", "type": "int", "operator": "is_null", "values": []}
    same = {"column": "flag", "type": "int", "operator": "<=>", "values": [None]}
    not_null = {"column": "flag", "type": "int", "operator": "is_not_null", "values": []}
    for condition in (null, same, _not(not_null)):
        assert _sides(condition, _flag(None)) is None
        assert _sides(condition, _flag(1)) == [(1.0, 1.0)]


@pytest.mark.parametrize(("compared_as", "limit"), [("float", 2**24), ("double", 2**53)])
def test_a_number_that_others_round_to_includes_them(compared_as, limit):
    space = LinearTransformation(limit - 100, limit + 100, 0, "LongDataType")
    revision = Revision(1, 0, "/t", 100, (Transformer("linear", "n", "LongDataType"),), (space,))
    for literal in (limit - 1, limit, limit + 2):
        condition = {"column": "n", "type": "bigint", "as": compared_as, "operator": "=", "values": [f"{literal}.0"]}
        ((low, high),) = _sides(condition, revision)
        meeting = [n for n in range(limit - 8, limit + 8) if _rounded(n, limit) == literal]
        assert all(low <= space.coordinate(n) <= high for n in meeting)
        assert len(meeting) == (2 if literal == limit else 1)
        assert high - low < 0.05  # and it still skips


def _rounded(number, limit):
    """Half to even, to steps of two from the limit on."""
    return number if number < limit else number + (number % 2 and (1 if number % 4 == 3 else -1))


# --------------------------------------------------------------------------------------- large conditions


def _point(number):
    return _condition("long", "=", number)


def test_ten_thousand_alternatives_skip_the_widest_gaps():
    near = [_point(number) for number in range(10_000)]
    boxes = _boxes(_any(*near, _point(2**59)), _conf(_revision(names=("long",))))["1"]
    assert len(boxes) <= 64
    assert boxes[-1]["lower"] == boxes[-1]["upper"]
    assert all(box["upper"][0] < 0.6 for box in boxes[:-1])


def test_ten_thousand_conditions_at_once():
    conditions = [_condition("long", ">", number * 2**40) for number in range(10_000)]
    (box,) = _boxes(_all(*conditions), _conf(_revision(names=("long",))))["1"]
    assert box["lower"] == [_coordinate("long", 9_999 * 2**40)]
    assert _boxes(_all(*(_not(_point(number)) for number in range(10_000)))) is None


def test_the_work_on_a_condition_is_bounded(monkeypatch):
    """Each of these would take 4,096 pairs of boxes."""
    met = []
    meet = Region.meet

    def counted(one, other):
        met.append(len(one.boxes) * len(other.boxes))
        return meet(one, other)

    monkeypatch.setattr(Region, "meet", counted)
    wide = [
        _all(
            _condition("long", "in", *(number * 2**50 + i for number in range(64))),
            _condition("whole", "in", *range(i % 9, i % 9 + 64)),
        )
        for i in range(100)
    ]
    conf = _conf(_revision(names=("long", "whole")))
    assert len(_boxes(_any(*wide), conf)["1"]) == 64
    assert len(_boxes(_all(*wide), conf)["1"]) <= 64
    assert sum(met) <= 2 * 100_000


def test_a_deep_condition_is_understood():
    tree = _condition("long", ">", 0)
    for number in range(100):
        tree = _not(_any(_not(_condition("long", ">", -number)), _not(tree)))
    (box,) = _boxes(tree, _conf(_revision(names=("long",))))["1"]
    assert box["lower"] == [0.5]


def test_what_json_cannot_hold_is_refused_by_a_code():
    deep = '{"operator": "not", "of": [' * 100_000
    with pytest.raises(TooComplexError, match="USE_TOO_COMPLEX"):
        condition_of_json(deep)


def test_many_conditions_over_many_revisions_judge_the_newest(caplog):
    revisions = [_revision(number, ("long",)) for number in range(1, 20)]
    answer = _boxes(_any(*(_point(number) for number in range(10_000))), _conf(*revisions))
    assert set(answer) == {"16", "17", "18", "19"}
    assert "newest 4 of 19 revisions" in caplog.text


def test_another_writer_may_have_hashed_texts_in_another_charset():
    foreign = json.dumps(configuration_of([_revision()]))
    for text, skips in (("Jose", True), ("José", False), ("東京", False)):
        condition = _condition("name", "=", text)
        assert _boxes(condition) is not None
        assert (_boxes(condition, foreign) is not None) == skips
