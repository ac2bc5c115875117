"""When ``use.approximate`` answers exactly because samples are not expected to be faster, without Spark."""

from types import SimpleNamespace

import pytest

from procedures.insight.approximation.answer import Answer, Request
from procedures.insight.approximation.estimation import Goal

GOAL = Goal(0.05, 0.95, is_absolute=False, is_per_group=False)
MB = 1_000_000


def answer(exact_bytes, share=0.5, on_miss="exact", per_core="100000000b", **more):
    context = SimpleNamespace(defaultParallelism=2)
    spark = SimpleNamespace(sparkContext=context, conf=SimpleNamespace(get=lambda *_: per_core))
    source = SimpleNamespace(spark=spark, column_share=share, table="t")
    return Answer(source, SimpleNamespace(bytes=exact_bytes), Request(GOAL, 0.5, on_miss, **more))


@pytest.mark.parametrize(
    ("exact_bytes", "sampled_bytes", "share", "is_exact"),
    [
        (1000 * MB, 599 * MB, 0.5, False),  # saves 200.5 MB of the columns: more than the looks cost
        (1000 * MB, 600 * MB, 0.5, True),
        (1000 * MB, 800 * MB, 1.0, True),
        (1000 * MB, 799 * MB, 1.0, False),
        (32 * MB, 40 * MB, 1.0, False),  # reads so little that it does not matter
    ],
)
def test_samples_save_more_than_their_looks_cost(exact_bytes, sampled_bytes, share, is_exact):
    assert answer(exact_bytes, share)._is_exact_faster(sampled_bytes) is is_exact


@pytest.mark.parametrize("more", [{"on_miss": "estimate"}, {"on_miss": "error"}, {"dry_run": True}])
def test_only_an_answer_that_may_be_exact_is(more):
    assert not answer(1000 * MB, **more)._is_exact_faster(1000 * MB)
