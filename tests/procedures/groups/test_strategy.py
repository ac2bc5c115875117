"""Strategies are asked with limited batches after conflicts, and what is no strategy is refused."""

import pytest

from catalog.errors import InvalidArgumentError
from procedures.groups.strategy import SelectionSettings, Strategy
from procedures.process.application import application
from procedures.selection import register_strategy


def test_batches_are_limited_and_never_grow():
    settings = SelectionSettings(100, None, {"batch_bytes": 1000})
    assert settings.with_batch_limit(10).options == {"batch_bytes": 10}
    assert settings.with_batch_limit(5000).options == {"batch_bytes": 1000}
    assert settings.with_batch_limit(None) is settings
    assert settings.options == {"batch_bytes": 1000}


def test_strategies_without_batches_are_not_limited():
    settings = SelectionSettings(100, None, {"fraction": 0.5})
    assert settings.with_batch_limit(10) is settings


class Nameless(Strategy):
    doc = "Has no name."

    def groups(self, table, settings):
        yield "Nothing is chosen."


@pytest.mark.parametrize(
    ("refused", "named"),
    [
        (Nameless(), "Nameless' is not accepted: a class with an attribute name"),
        (Nameless, "an instance of a subclass of sql_ext.Strategy that overrides groups"),
        (object(), "an instance of a subclass of sql_ext.Strategy that overrides groups"),
    ],
)
def test_what_cannot_choose_is_refused_when_it_is_registered(refused, named):
    before = dict(application().own_strategies)
    with pytest.raises(InvalidArgumentError) as error:
        register_strategy(refused)
    assert named in error.value.message
    assert before == application().own_strategies
