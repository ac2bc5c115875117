"""Options of strategies, made of the settings that declare them."""

import pytest

from catalog.errors import InvalidArgumentError
from catalog.settings.setting import BOOLEAN, SIZE, TEXT, Setting, duration, whole_number
from procedures.declare.option import option, option_value
from procedures.declare.signature import Parameter
from procedures.selection import built_in_strategies

LIMIT = Setting("most_bytes", SIZE, "Bytes, at most.", "1MB")
TIME = Setting("time", duration("a time", spark_syntax=False), "Time.", "2 s")
COUNT = Setting("count", whole_number(2, sql_type="INT"), "Files, at least.")


def test_an_option_is_what_its_setting_declares():
    limit = option(LIMIT)
    assert (limit.name, limit.type, limit.doc, limit.default) == ("most_bytes", "BIGINT", "Bytes, at most.", 2**20)
    assert limit.accepted == SIZE.accepted
    assert option(COUNT).signature == "count INT = NULL"
    assert option(TIME).default_text == "'2 s'"
    assert option(Setting("on", BOOLEAN, "On.", "true")).signature == "on BOOLEAN = true"
    assert option(COUNT, required=True).required
    assert not option(COUNT).required


def test_its_value_is_that_of_the_setting():
    assert (option_value(option(LIMIT), None), option_value(option(LIMIT), "2kb")) == (2**20, 2048)
    assert (option_value(option(TIME), None), option_value(option(TIME), "1 minute")) == (2000, 60_000)
    assert (option_value(option(COUNT), None), option_value(option(COUNT), "2")) == (None, 2)
    for text in ("1", "x", "-3", ""):
        with pytest.raises(InvalidArgumentError, match="a whole number of at least 2"):
            option_value(option(COUNT), text)
    with pytest.raises(InvalidArgumentError, match=r"count is missing: an INT is required .*: Files, at least"):
        option_value(option(COUNT, required=True), None)


def test_a_parameter_of_a_strategy_of_users_has_the_range_of_its_type():
    own = Parameter("largest_bytes", "BIGINT", "Files above it.", 7)
    assert (option_value(own, None), option_value(own, "9")) == (7, 9)
    assert option_value(Parameter("text", "STRING", "A text.", "a"), " b ") == " b "
    with pytest.raises(InvalidArgumentError, match="largest_bytes = '0'"):
        option_value(own, "0")


def test_a_check_of_the_setting_is_one_of_the_option():
    def refuse(name, text):
        raise InvalidArgumentError.of(name, text, "nothing")

    with pytest.raises(InvalidArgumentError, match="x = 'a' is not accepted: nothing"):
        option_value(option(Setting("x", TEXT, "X.", check=refuse)), "a")


def test_the_defaults_of_built_in_strategies_are_accepted():
    for strategy in built_in_strategies():
        given = {o.name: "0.5" for o in strategy.options if o.required}
        values = {o.name: option_value(o, given.get(o.name)) for o in strategy.options}
        strategy.check_options(values)
