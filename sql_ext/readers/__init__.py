"""Tables without Spark and without a JVM: samples and boxes for other libraries, and a diagnosis."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sql_ext.readers.table_scan import Scan, scan

__all__ = ["Scan", "diagnose", "scan"]

# Imported with the first use: each needs modules of this package.
_MODULE_OF = {
    "Scan": "sql_ext.readers.table_scan",
    "diagnose": "sql_ext.diagnosis.diagnose",
    "scan": "sql_ext.readers.table_scan",
}


def __getattr__(name: str) -> Any:
    """Imports a name of the API."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value
