"""What the keys of the source of a MERGE may cost: the limits that the shim applies."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass

from catalog.settings.session_settings import JOINS_ENABLED, JOINS_KEYS, MERGES_BYTES

_RANGES = 50
"""Ranges of one key; Delta compares each file with each of them."""


@dataclass(frozen=True)
class MergeLimits:
    """The limits of a session.

    Attributes:
        enabled: whether a MERGE looks only for keys of its source.
        keys: rows of a source; of more, only the range of the keys is used.
        bytes: bytes of a target from which a job may read the keys for it.
        ranges: ranges of one key.
    """

    enabled: bool
    keys: int
    bytes: int
    ranges: int = _RANGES

    @classmethod
    def of(cls, conf: Callable[[str, str], str | None]) -> MergeLimits:
        """The limits in a configuration of Spark; a value that is not accepted counts as the default."""
        return cls(
            enabled=JOINS_ENABLED.of_conf_or_default(conf),
            keys=JOINS_KEYS.of_conf_or_default(conf),
            bytes=MERGES_BYTES.of_conf_or_default(conf),
        )

    @property
    def json(self) -> str:
        """The limits as the shim reads them."""
        return json.dumps(asdict(self))
