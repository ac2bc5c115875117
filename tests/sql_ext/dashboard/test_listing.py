"""Search, order and pages of 10,000 tables."""

from urllib.parse import parse_qsl

import pytest
from fleet_fakes import fleet_of

from catalog.errors import InvalidArgumentError
from sql_ext.dashboard.listing import COLUMNS, Query, list_page


@pytest.fixture(scope="module")
def lines():
    return fleet_of(1_000).lines


def _names(lines, **parameters):
    return [line.name for line in list_page(lines, Query.of(parameters)).lines]


def test_pages_have_every_table_once(lines):
    first = list_page(lines, Query())
    assert (first.pages, first.matches, first.first, first.last) == (20, 1_000, 1, 50)
    names = [name for page in range(1, 21) for name in _names(lines, page=str(page))]
    assert sorted(names) == sorted(line.name for line in lines)
    assert names != sorted(names)
    last = list_page(lines, Query.of({"page": "999"}))
    assert (last.number, last.first, last.last) == (20, 951, 1_000)
    nothing = list_page(lines, Query.of({"search": "nothing of this name"}))
    assert (nothing.lines, nothing.pages, nothing.first, nothing.last) == ((), 1, 0, 0)


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
def test_each_column_orders_in_both_directions_with_missing_values_last(lines, column):
    for direction in ("up", "down"):
        query = Query.of({"order": column.name, "direction": direction})
        pages = [list_page(lines, Query.of(dict(parse_qsl(query.text(page=n)[1:])))) for n in range(1, 21)]
        values = [column.key(line) for page in pages for line in page.lines]
        known = [value for value in values if value is not None]
        assert values == known + [None] * (len(values) - len(known))
        assert known == sorted(known, reverse=direction == "down")


def test_a_second_click_turns_the_order_around():
    rank, cost = COLUMNS[0], next(column for column in COLUMNS if column.name == "cost")
    query = Query.of({"search": "a&b=c", "page": "3"})
    again = Query.of(dict(parse_qsl(query.ordered_by(rank)[1:])))
    assert (again.is_downward, again.page, again.search) == (True, 1, "a&b=c")
    other = Query.of(dict(parse_qsl(query.ordered_by(cost)[1:])))
    assert (other.order, other.is_downward) == ("cost", True)
    assert Query().text() == "?"


def test_search_looks_at_names_and_reasons(lines):
    assert len(_names(lines, search="TABLE_0012")) == 10
    waiting = list_page(lines, Query.of({"search": "budget_used_up", "state": "waiting"}))
    assert waiting.matches > 50
    assert {line.row.state for line in waiting.lines} == {"waiting"}


@pytest.mark.parametrize(
    "parameters",
    [{"order": "x"}, {"direction": "left"}, *({"page": text} for text in ("0", "-1", "²", "9" * 50)), {"refresh": "5"}],
)  # fmt: skip
def test_other_values_are_refused(parameters):
    (name,) = parameters
    with pytest.raises(InvalidArgumentError, match=f"{name} = "):
        Query.of(parameters)
