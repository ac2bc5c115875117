"""Strategies begin a selector for each run; a strategy that only overrides ``select`` is served by one of ours."""

import pytest

from catalog.errors import InvalidArgumentError
from procedures.calls.optimize import OPTIMIZE
from procedures.declare.declaration import Parameter
from procedures.groups.plan import Selection
from procedures.loop.optimize_settings import OptimizeSettings
from procedures.loop.run_selection import RunSelection
from procedures.process.application import application
from procedures.selection import SelectionSettings, Selector, Strategy, register_strategy

DEFAULTS = {p.name: p.default for p in OPTIMIZE.parameters if not p.required}


class Counting(Strategy):
    """A strategy with a selector of its own, which counts its choices."""

    name = "Counting"
    doc = "Counts."
    options = (Parameter("batch_bytes", "BIGINT", "Bytes.", 1000),)

    def begin(self, settings):
        return CountingSelector(settings)


class CountingSelector(Selector):
    def __init__(self, settings):
        super().__init__(settings)
        self.choices = 0

    def select(self, snapshot):
        self.choices += 1
        return Selection(note=f"{snapshot} {self.choices} {self.settings.options['batch_bytes']}")


class Remembering(Strategy):
    """A strategy as they were written before there were selectors."""

    name = "Remembering"
    doc = "Remembers."
    options = (Parameter("batch_bytes", "BIGINT", "Bytes.", 1000),)

    def select(self, snapshot, settings):
        first = settings.memory.setdefault("first", snapshot)
        return Selection(note=f"{first} {snapshot} {settings.options['batch_bytes']}")


@pytest.fixture(params=[Counting, Remembering])
def run(request):
    """The selection of a run with a strategy of each kind, and a function that begins one more run."""
    register_strategy(request.param())
    settings = OptimizeSettings.of({**DEFAULTS, "table": "t", "strategy": request.param.name})
    yield lambda: RunSelection(settings)
    del application().own_strategies[request.param.name]


def _notes(selection, *snapshots):
    ((_, selector),) = selection
    return [selector.select(snapshot).note for snapshot in snapshots]


def test_a_selector_keeps_its_state_for_one_run(run):
    first, second = run(), run()
    expected = (
        ["v1 1 1000", "v2 2 1000"] if "Counting" in application().own_strategies else ["v1 v1 1000", "v1 v2 1000"]
    )
    assert _notes(first, "v1", "v2") == expected
    assert _notes(second, "v1", "v2") == expected


def test_smaller_batches_keep_the_state_and_are_lifted_again(run):
    selection = run()
    _notes(selection, "v1")
    selection.limit_batches(10)
    expected = "v2 2" if "Counting" in application().own_strategies else "v1 v2"
    assert _notes(selection, "v2") == [f"{expected} 10"]
    selection.limit_batches(5000)
    assert _notes(selection, "v3")[0].endswith(" 1000")
    selection.limit_batches(7)
    selection.limit_batches(None)
    assert _notes(selection, "v4")[0].endswith(" 1000")


def test_strategies_without_batches_are_not_limited():
    settings = SelectionSettings(100, None, {"fraction": 0.5})
    assert settings.with_batch_limit(10) is settings


def test_settings_are_not_changed_by_a_run(run):
    selection = run()
    ((_, selector),) = selection
    before = selector.settings
    selection.limit_batches(10)
    assert before.options == {"batch_bytes": 1000}


class Neither(Strategy):
    name = "Neither"
    doc = "Chooses nothing."


class Nameless(Strategy):
    doc = "Has no name."

    def select(self, snapshot, settings):
        return Selection()


@pytest.mark.parametrize(
    ("refused", "named"),
    [
        (Neither(), "Neither' is not accepted: a class that overrides select(self, snapshot, settings) or begin"),
        (Nameless(), "Nameless' is not accepted: a class with an attribute name"),
        (Counting, "an instance of a subclass of sql_ext.Strategy"),
        (object(), "an instance of a subclass of sql_ext.Strategy"),
    ],
)
def test_what_cannot_select_is_refused_when_it_is_registered(refused, named):
    before = dict(application().own_strategies)
    with pytest.raises(InvalidArgumentError) as error:
        register_strategy(refused)
    assert named in error.value.message
    assert before == application().own_strategies


def test_a_strategy_with_a_selector_can_be_asked_directly():
    assert Counting().select("v1", SelectionSettings(1, None, {"batch_bytes": 3})).note == "v1 1 3"
