"""The registry of procedures: built-in ones and those that users register."""

from __future__ import annotations

from catalog.errors import UnknownNameError
from procedures.calls.approximate import APPROXIMATE
from procedures.calls.cancel import CANCEL
from procedures.calls.check import CHECK
from procedures.calls.clustering_information import CLUSTERING_INFORMATION
from procedures.calls.compact import COMPACT
from procedures.calls.consolidate_log import CONSOLIDATE_LOG
from procedures.calls.drop_index import DROP_INDEX
from procedures.calls.explain_skipping import EXPLAIN_SKIPPING
from procedures.calls.fleet import FLEET
from procedures.calls.health import HEALTH
from procedures.calls.help import help_procedure
from procedures.calls.index import INDEX
from procedures.calls.optimize import OPTIMIZE
from procedures.calls.plan import PLAN
from procedures.calls.protect import PROTECT
from procedures.calls.purge import PURGE
from procedures.calls.quantiles import QUANTILES_PROCEDURE
from procedures.calls.recommend import RECOMMEND
from procedures.calls.report import REPORT
from procedures.calls.resume import RESUME
from procedures.calls.status import STATUS
from procedures.calls.suspend import SUSPEND
from procedures.calls.unprotect import UNPROTECT
from procedures.calls.vacuum import VACUUM
from procedures.declare.declaration import Procedure
from procedures.process.application import application


def built_in_procedures() -> tuple[Procedure, ...]:
    """The procedures that every application has, made anew."""
    return (
        help_procedure(procedures),
        INDEX,
        DROP_INDEX,
        QUANTILES_PROCEDURE,
        PLAN,
        OPTIMIZE,
        COMPACT,
        CLUSTERING_INFORMATION,
        EXPLAIN_SKIPPING,
        APPROXIMATE,
        RECOMMEND,
        CHECK,
        HEALTH,
        REPORT,
        FLEET,
        VACUUM,
        PURGE,
        PROTECT,
        UNPROTECT,
        CONSOLIDATE_LOG,
        CANCEL,
        SUSPEND,
        RESUME,
        STATUS,
    )


def register(procedure: Procedure) -> None:
    """Registers a procedure and replaces an earlier one of the same name."""
    application().own_procedures[procedure.name] = procedure


def procedures() -> dict[str, Procedure]:
    """Returns the registered procedures by name."""
    return _BUILT_IN | application().own_procedures


def procedure(name: str) -> Procedure:
    """Returns one procedure.

    Raises:
        UnknownNameError: no procedure of this name; the message suggests the nearest one.
    """
    registered = procedures()
    if name.lower() not in registered:
        raise UnknownNameError.of("procedure", name, registered)
    return registered[name.lower()]


_BUILT_IN = {procedure.name: procedure for procedure in built_in_procedures()}
