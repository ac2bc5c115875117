"""The registry of procedures: built-in ones and those that users register."""

from __future__ import annotations

from catalog.errors import UnknownNameError
from procedures.cancel import CANCEL
from procedures.check import CHECK
from procedures.clustering_information import CLUSTERING_INFORMATION
from procedures.declaration import Procedure
from procedures.drop_index import DROP_INDEX
from procedures.help import help_procedure
from procedures.index import INDEX
from procedures.optimize import OPTIMIZE
from procedures.quantiles import QUANTILES_PROCEDURE
from procedures.resume import RESUME
from procedures.status import STATUS
from procedures.suspend import SUSPEND
from procedures.vacuum import VACUUM

_PROCEDURES: dict[str, Procedure] = {}


def register(procedure: Procedure) -> None:
    """Registers a procedure and replaces an earlier one of the same name."""
    _PROCEDURES[procedure.name] = procedure


def procedures() -> dict[str, Procedure]:
    """Returns the registered procedures by name."""
    return dict(_PROCEDURES)


def procedure(name: str) -> Procedure:
    """Returns one procedure.

    Raises:
        UnknownNameError: no procedure of this name; the message suggests the nearest one.
    """
    registered = _PROCEDURES.get(name.lower())
    if registered is None:
        raise UnknownNameError.of("procedure", name, _PROCEDURES)
    return registered


for _built_in in (
    help_procedure(procedures),
    INDEX,
    DROP_INDEX,
    QUANTILES_PROCEDURE,
    OPTIMIZE,
    CLUSTERING_INFORMATION,
    CHECK,
    VACUUM,
    CANCEL,
    SUSPEND,
    RESUME,
    STATUS,
):
    register(_built_in)
