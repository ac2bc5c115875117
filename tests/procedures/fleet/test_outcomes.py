"""What became of earlier rewrites corrects the next prediction, within limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from procedures.fleet.outcomes import LEAST_CORRECTION, LEAST_SCANS, MOST_CORRECTION, NOISE, Outcome, correction

shares = st.floats(0, 1)
outcomes = st.builds(
    Outcome,
    at=st.integers(0, 10**12),
    cost=st.integers(0, 10**12),
    predicted=shares,
    share_before=shares,
    saving=st.floats(0, 1e12),
    measured=st.none() | st.floats(-1, 1),
)


def _outcome(predicted, measured):
    return Outcome(0, 1, predicted, 1.0, 1.0, measured)


def test_too_few_scans_say_nothing():
    outcome = Outcome(0, 1, 0.5, 0.8, 1.0)
    assert outcome.judged(LEAST_SCANS - 1, 0.1) is outcome
    assert outcome.judged(LEAST_SCANS, 0.3).measured == pytest.approx(0.5)
    assert outcome.ratio is None
    assert correction([outcome]) == 1


def test_a_prediction_that_comes_true_corrects_nothing():
    assert correction([_outcome(0.3, 0.3), _outcome(0.01, 0.01)]) == pytest.approx(1)


def test_outcomes_of_small_rewrites_prove_little():
    assert _outcome(0.9, 0.0).ratio < 0.2
    assert _outcome(0.01, 0.0).ratio > 0.9
    assert _outcome(0.01, NOISE / 10).ratio < 1.1


@given(st.lists(outcomes))
def test_corrections_have_limits(earlier):
    assert LEAST_CORRECTION * (1 - 1e-9) <= correction(earlier) <= MOST_CORRECTION * (1 + 1e-9)


@given(st.lists(outcomes), outcomes.filter(lambda outcome: outcome.ratio is not None))
def test_the_newest_outcome_counts_for_half(earlier, newest):
    assert correction([*earlier, newest]) == pytest.approx((correction(earlier) * newest.ratio) ** 0.5)


@given(shares.filter(lambda share: share > 0), st.floats(-1, 1), st.floats(-1, 1))
def test_reads_that_save_more_never_correct_downwards(predicted, one, other):
    less, more = sorted((one, other))
    assert _outcome(predicted, less).ratio <= _outcome(predicted, more).ratio
