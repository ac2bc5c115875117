"""What keys of joins and of the sources of MERGE may cost: limits that the shim applies, and when a job pays. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass

from catalog.pruning.join_reasons import JoinReason
from catalog.settings.session_settings import JOINS_BYTES, JOINS_ENABLED, JOINS_JOB_SHARE, JOINS_KEYS, MERGES_BYTES

_RANGES = 64
"""Ranges of one key; the index merges boxes beyond this number."""
_BOXES = 256
"""Product of the ranges of all joins of a scan, which the index intersects."""
_MERGE_RANGES = 50
"""Ranges of one key of a MERGE; Delta compares each file with each of them."""


@dataclass(frozen=True)
class KeyLimits:
    """The limits of a session.

    Attributes:
        enabled: whether keys skip files at all.
        keys: keys of a side; of more, a join makes no ranges, and a MERGE one.
        bytes: bytes of a scan from which a job may read statistics or keys for it.
        job_share: bytes that a job may read for keys, as a share of those that the keys could save.
        ranges: ranges of one key.
        boxes: product of the ranges of all joins of a scan.
        merge_bytes: bytes of the target of a MERGE from which a job may read the keys for it.
        merge_ranges: ranges of one key of a MERGE.
    """

    enabled: bool
    keys: int
    bytes: int
    job_share: float
    merge_bytes: int
    ranges: int = _RANGES
    boxes: int = _BOXES
    merge_ranges: int = _MERGE_RANGES

    @classmethod
    def of(cls, conf: Callable[[str, str], str | None]) -> KeyLimits:
        """The limits in a configuration of Spark; a value that is not accepted counts as the default."""
        return cls(
            enabled=JOINS_ENABLED.of_conf_or_default(conf),
            keys=JOINS_KEYS.of_conf_or_default(conf),
            bytes=JOINS_BYTES.of_conf_or_default(conf),
            job_share=JOINS_JOB_SHARE.of_conf_or_default(conf),
            merge_bytes=MERGES_BYTES.of_conf_or_default(conf),
        )

    @property
    def json(self) -> str:
        """The limits as the shim reads them."""
        return json.dumps(asdict(self))

    def refused_job(self, scan_bytes: int, side_bytes: int, one_key_share: float) -> JoinReason | None:
        """Decides whether a job collects the keys of a side that is shuffled.

        Args:
            scan_bytes: what the scan reads of its files, in bytes: its columns only.
            side_bytes: what the job would read.
            one_key_share: share of the bytes of the scan that a single key leaves; 1 if keys cannot skip files.

        Returns:
            Why the job is not started; None if it is.
        """
        if self.job_share == 0:
            return JoinReason.SHUFFLED
        savable = scan_bytes * (1 - one_key_share)
        return JoinReason.JOB_TOO_LARGE if side_bytes > self.job_share * savable else None
