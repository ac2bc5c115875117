"""Random conditions, joins and samples over some hundred files; ``make fuzz-queries`` runs many more."""

from random import Random

import pytest
from random_queries import Tally, make_table, run

SEED, CONDITIONS = 20_261, 48


@pytest.mark.slow
def test_queries_that_skip_files_lose_no_row(spark):
    table = make_table(spark, "default.oracle_queries", Random(SEED))
    try:
        assert len(table.files) > 200
        tally = Tally()
        for _ in run(table, SEED, CONDITIONS, tally):
            pass
        print(tally.text)
        assert not tally.failures, "\n".join(tally.failures)
        # Otherwise nothing was tried.
        assert tally.skipping > 0.3 * tally.scans, tally.text
        assert tally.skipped > 0.1 * tally.files, tally.text
    finally:
        table.sql("DROP TABLE {t}")
