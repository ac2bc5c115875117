"""A sample of the random joins of ``make fuzz-joins``."""

from random import Random

import pytest
from random_joins import JoinTally, make_join_tables, run_joins


@pytest.mark.slow
def test_random_joins_have_the_rows_of_joins_that_skip_nothing(spark):
    tables = make_join_tables(spark, "default.few_joins", Random(3))
    tally = JoinTally()
    for _ in run_joins(spark, tables, range(11, 13), tally):
        pass
    assert not tally.failures, "\n".join(tally.failures)
    assert tally.narrowed, tally.text
