"""Texts of settings: one parser for each type, whoever they come from."""

import pytest

from catalog.errors import InvalidArgumentError
from catalog.settings.session_settings import JOINS_KEYS
from catalog.settings.setting import (
    ABOVE_ZERO,
    BOOLEAN,
    NUMBER,
    OF_SQL_TYPE,
    RATIO,
    SHARE,
    SIZE,
    TEXT,
    Setting,
    choice,
    duration,
    names_of,
    whole_number,
)

SPARK_TIME = duration("a time")
RUN_TIME = duration("a time", units=("s", "m", "h", "d"), spark_syntax=False)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (BOOLEAN, " True ", True),
        (BOOLEAN, "FALSE", False),
        (NUMBER, " -1.5e3", -1500.0),
        (SHARE, "1", 1.0),
        (RATIO, "0", 0.0),
        (RATIO, "1", 1.0),
        (ABOVE_ZERO, "0.001", 0.001),
        (SIZE, " 2 gb ", 2 << 30),
        (SIZE, "3TB", 3 << 40),
        (SIZE, "8388607tb", 2**63 - 2**40),
        (TEXT, " as it is ", " as it is "),
        (names_of("names"), " a , b", ("a", "b")),
        (whole_number(0), " 0 ", 0),
        (whole_number(1, digits=4), "9999", 9999),
        (choice(("", "x"), "x"), "", ""),
        (choice(("on", "off"), "on or off", any_case=True), " ON ", "on"),
        (SPARK_TIME, "1 hour 30 minutes", 5_400_000),
        (SPARK_TIME, "100 ms", 100),
        (SPARK_TIME, "100", 100),
        (RUN_TIME, "90s", 90_000),
        (RUN_TIME, "0.5h", 1_800_000),
        (OF_SQL_TYPE["INT"], "3", 3),
    ],
)
def test_accepted(kind, text, value):
    assert kind.parse("k", text) == value


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        (BOOLEAN, ["", "yes", "1", "tru e"]),
        (NUMBER, ["", "nan", "inf", "1e400", "x"]),
        (SHARE, ["0", "-0.1", "1.0001", "nan", ""]),
        (SIZE, ["", "0", "0MB", "-1", "1.5MB", "1 PB", "\uff11", "8388608tb", "10000000tb"]),
        (names_of("names"), ["", " ", "a,,b", "a,"]),
        (whole_number(1), ["0", "-1", "1.0", "1_0", "9" * 19, "\uff11", ""]),
        (choice(("", "x"), "x"), ["X", " x"]),
        (RATIO, ["", "-0.1", "1.01", "nan", "inf", "half"]),
        (whole_number(1, most=100), ["0", "101", "-1", "1.5"]),
        (ABOVE_ZERO, ["", "0", "-1", "nan", "inf"]),
        (
            SPARK_TIME,
            ["", "soon", "0s", "5 parsecs", "5 6", "minutes 5", "-5 minutes", "9" * 400, "1 s" + "9" * 400 + "w"],
        ),
        # To refuse them takes no longer than to read them.
        (SPARK_TIME, ["1" * 40 + "!", "1s" * 10_000 + "!", " " * 10_000 + "!"]),
        (RUN_TIME, ["", "10", "1 minute 2 seconds", "interval 1 minute", "100 ms", "1 week", "0 seconds"]),
    ],
)
def test_refused(kind, texts):
    for text in texts:
        with pytest.raises(InvalidArgumentError) as error:
            kind.parse("the.key", text)
        assert error.value.message.startswith("the.key = ")
        assert error.value.message.endswith(f"is not accepted: {kind.accepted}.")


def _refuse_seven(name, text):
    if text == "7":
        raise InvalidArgumentError.of(name, text, "any number but seven")


LIMIT = Setting("limit", whole_number(1), "A limit.", "5", check=_refuse_seven)
OPEN = Setting("open", whole_number(1), "A limit.")


def test_a_value_that_is_set_goes_before_the_default():
    assert (LIMIT.value({}), LIMIT.value({"limit": "9"})) == (5, 9)
    assert (OPEN.optional_value({}), OPEN.optional_value({"open": "9"}), LIMIT.optional_value({})) == (None, 9, None)
    with pytest.raises(LookupError, match="open"):
        OPEN.value({})


def test_a_check_refuses_under_the_name_that_was_used():
    with pytest.raises(InvalidArgumentError, match="limit = '7' is not accepted: any number but seven"):
        LIMIT.parse("7")
    with pytest.raises(InvalidArgumentError, match="maxRows = '7'"):
        LIMIT.named("maxRows").optional_value({"maxRows": "7"})


def test_confs_of_spark():
    assert LIMIT.of_conf(lambda _, default: default) == 5
    assert LIMIT.of_conf(lambda *_: " 8 ") == 8
    assert LIMIT.of_conf(lambda *_: "") == 5
    with pytest.raises(InvalidArgumentError, match="limit = 'x'"):
        LIMIT.of_conf(lambda *_: "x")
    assert LIMIT.of_conf_or_default(lambda *_: "x") == 5
    with pytest.raises(LookupError, match="open"):
        OPEN.of_conf(lambda *_: "1")


def test_an_alias_counts_unless_the_name_is_set():
    setting = Setting("new", whole_number(1), "Rows.", "5", aliases=("old",))
    assert (setting.value({}), setting.value({"old": "2"}), setting.value({"old": "2", "new": "3"})) == (5, 2, 3)
    assert setting.named("other").optional_value({"old": "2"}) is None
    with pytest.raises(InvalidArgumentError, match="old = '0'"):
        setting.optional_value({"old": "0"})


def test_a_value_that_is_no_text_is_checked():
    setting = Setting("share", RATIO, "A share.")
    setting.check_value(None)
    setting.check_value(0.5)
    with pytest.raises(InvalidArgumentError, match=r"share = 2.0 is not accepted: a number from 0 to 1"):
        setting.check_value(2.0)


def test_keys_of_a_join_are_bounded():
    """Their limit is a number of rows of Spark, plus one."""
    with pytest.raises(
        InvalidArgumentError, match=r"joins.keys = '3000000000' .*: a whole number from 1 to 1000000000"
    ):
        JOINS_KEYS.parse("3000000000")
