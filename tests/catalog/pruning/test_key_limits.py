"""What keys may cost: the limits of a session, and when a job for keys pays. No Spark."""

import json
import re
from pathlib import Path

import pytest

from catalog.pruning.join_reasons import JoinReason
from catalog.pruning.key_limits import KeyLimits

ROOT = Path(__file__).resolve().parents[3]
PREFIX = "spark.qbeast.use."


def limits_with(**settings):
    values = {f"{PREFIX}{name.replace('__', '.').replace('_', '-')}": value for name, value in settings.items()}
    return KeyLimits.of(values.get)


def test_limits_are_those_of_the_settings():
    assert limits_with() == KeyLimits(True, 50_000, 256 << 20, 0.02, 16 << 20, ranges=64, boxes=256, merge_ranges=50)
    limits = limits_with(
        joins__enabled="false", joins__keys="7", joins__bytes="1kb", joins__job_share="0", merges__bytes="2kb"
    )
    assert limits == KeyLimits(enabled=False, keys=7, bytes=1024, job_share=0, merge_bytes=2048)


def test_a_setting_that_is_not_accepted_counts_as_its_default():
    assert limits_with(joins__keys="many", joins__job_share="-2", merges__bytes="-1") == limits_with()
    # The shim asks Spark for one row more.
    assert limits_with(joins__keys="3000000000") == limits_with()


def test_the_shim_reads_each_limit():
    source = (ROOT / "jars-build/src/main/scala/io/usespark/read/KeyLimits.scala").read_text()
    assert set(re.findall(r'required\("(\w+)"\)', source)) == set(json.loads(limits_with().json))


@pytest.mark.parametrize(
    ("scan", "side", "one_key", "reason"),
    [
        (1000, 20, 0.0, None),
        (1000, 21, 0.0, JoinReason.JOB_TOO_LARGE),
        (1000, 10, 0.5, None),
        (1000, 11, 0.5, JoinReason.JOB_TOO_LARGE),
        (1000, 1, 1.0, JoinReason.JOB_TOO_LARGE),
        (0, 0, 0.0, None),
    ],
)
def test_a_job_may_read_a_share_of_what_keys_can_save(scan, side, one_key, reason):
    assert limits_with().refused_job(scan, side, one_key) is reason
    assert limits_with(joins__job_share="0").refused_job(scan, side, one_key) is JoinReason.SHUFFLED
