"""What the options of a command say about its session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sql_ext.lifetime import Lifetime


@dataclass(frozen=True)
class SessionSettings:
    """Settings of the session of a command.

    Attributes:
        conf: settings of Spark.
        progress: whether to draw a progress bar; None = if standard error is a terminal.
        log_level: level of Spark's log, in a session that the command creates.
        warehouse: folder of tables and their metastore; None = Spark's settings apply.
        lifetime: what a session that the command creates is optimized for.
    """

    conf: Mapping[str, str]
    progress: bool | None = None
    log_level: str = "ERROR"
    warehouse: Path | None = None
    lifetime: Lifetime = Lifetime.PROGRAM


def session_settings_of(options: dict[str, Any]) -> SessionSettings:
    """Removes the values of ``session_options`` and ``--progress`` from the parsed options and returns them."""
    return SessionSettings(
        dict(options.pop("conf")),
        options.pop("progress", None),
        options.pop("log_level").upper(),
        options.pop("warehouse"),
    )


def for_metadata(session_settings: SessionSettings) -> SessionSettings:
    """Returns the settings of a session for a command that reads only metadata."""
    return replace(session_settings, lifetime=Lifetime.SHORT)
