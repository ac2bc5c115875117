"""Random inputs from outside, and the code that judges how they end; ``make fuzz-inputs`` tries many more."""

import sys
import time
from pathlib import Path
from random import Random

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from catalog.errors import InvalidArgumentError, UseError
from inputs import cases
from inputs.cases import Reader, outcome_of
from inputs.run import readers
from inputs.sql_inputs import problem_of, statement

SEEDS = 400
# Each writes a table.
SLOW = ("log: a table",)


@pytest.fixture(scope="module")
def quick():
    return [reader for reader in readers() if reader.name not in SLOW]


@pytest.mark.parametrize("part", range(4))
def test_every_input_ends_in_a_value_or_an_error_with_a_code(quick, part):
    for seed in range(part * SEEDS, (part + 1) * SEEDS):
        outcome = outcome_of(quick, seed)
        assert outcome.failure is None, f"make fuzz-inputs COUNT=1 SEED={seed}\n{outcome.failure}\n{outcome.shown}"


def test_every_reader_gets_sound_and_broken_inputs():
    assert len({reader.name for reader in readers()}) == len(readers()) > 30


def _outcome(read, errors=()):
    return outcome_of([Reader("r", lambda chance: chance.random(), read, errors)], 7, shows=True)


def _raises(error):
    def read(_):
        raise error

    return read


def test_what_is_a_failure(monkeypatch):
    assert _outcome(lambda _: 5).failure is None
    assert _outcome(_raises(InvalidArgumentError("no"))).end == "USE_INVALID_ARGUMENT"
    accepted = _outcome(_raises(KeyError("x")), (LookupError,))
    assert (accepted.end, accepted.failure) == ("KeyError", None)
    for bare in (KeyError("x"), AssertionError("x"), RecursionError("x"), SystemExit(1)):
        assert type(bare).__name__ in _outcome(_raises(bare)).failure
    assert "no code of its own" in _outcome(_raises(UseError("x"))).failure
    monkeypatch.setattr(cases, "_TIMERS", tuple((kind, number, 0.05) for kind, number, _ in cases._TIMERS))
    assert _outcome(lambda _: time.sleep(5)).end == "HangError"


def test_a_seed_repeats_a_case(quick):
    first, second = (outcome_of(quick, 11, shows=True) for _ in range(2))
    assert first == second
    assert statement(Random(3)) == statement(Random(3))


def test_statements_that_are_wrong_in_another_way():
    assert problem_of(lambda _: [], "SELECT 1") == ("rows", None)
    assert "no error of SQL" in problem_of(_raises(ValueError("x")), "SELECT 1")[1]
