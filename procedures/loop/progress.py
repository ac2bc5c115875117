"""A progress bar in terminals and notebooks."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import TracebackType
from typing import Any

from pyspark.sql import SparkSession

from catalog.settings.session_settings import PROGRESS


def _shown(spark: SparkSession) -> bool:
    shown = PROGRESS.of_conf_or_default(spark.conf.get)
    if shown != "auto":
        return shown == "true"
    return sys.stderr.isatty() or _in_notebook()


def _in_notebook() -> bool:
    """Whether cells are what runs: pyspark itself imports a notebook's packages wherever they are installed."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


class Progress:
    """Bytes rewritten and groups committed of one run; silent where nobody would see it.

    Args:
        spark: its setting ``spark.qbeast.use.progress`` is ``true``, ``false``, or ``auto``: where standard error is a
            terminal, and in notebooks.
        title: what runs.
    """

    def __init__(self, spark: SparkSession, title: str) -> None:
        self._bar: Any = None
        if _shown(spark):
            # Without ipywidgets, the bar of notebooks is a warning and no bar.
            name = "tqdm.auto" if importlib.util.find_spec("ipywidgets") else "tqdm"
            tqdm = importlib.import_module(name).tqdm
            self._bar = tqdm(desc=title, unit="B", unit_scale=True, leave=True)

    def __enter__(self) -> Progress:
        return self

    def planned(self, size: int, note: str) -> None:
        """Shows what is rewritten next.

        Args:
            size: bytes of the groups that begin now.
            note: what they are.
        """
        if self._bar is not None:
            self._bar.total = self._bar.n + size
            self._bar.set_postfix_str(note, refresh=True)

    def done(self, size: int) -> None:
        """Counts bytes that are through, whatever came of them."""
        if self._bar is not None:
            self._bar.update(size)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()
