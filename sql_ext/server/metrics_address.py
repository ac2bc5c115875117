"""The address of the endpoint for metrics."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_HOST = "127.0.0.1"


@dataclass(frozen=True)
class MetricsAddress:
    """The address of the endpoint; port 0 is a free port."""

    port: int
    host: str = DEFAULT_HOST
