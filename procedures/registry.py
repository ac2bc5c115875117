"""The registry of procedures: built-in ones and those that users register."""

from __future__ import annotations

from catalog.errors import UnknownNameError
from procedures.application import application
from procedures.approximate import APPROXIMATE
from procedures.cancel import CANCEL
from procedures.check import CHECK
from procedures.clustering_information import CLUSTERING_INFORMATION
from procedures.compact import COMPACT
from procedures.consolidate_log import CONSOLIDATE_LOG
from procedures.declaration import Procedure
from procedures.drop_index import DROP_INDEX
from procedures.explain_skipping import EXPLAIN_SKIPPING
from procedures.health import HEALTH
from procedures.help import help_procedure
from procedures.index import INDEX
from procedures.optimize import OPTIMIZE
from procedures.plan import PLAN
from procedures.protect import PROTECT
from procedures.purge import PURGE
from procedures.quantiles import QUANTILES_PROCEDURE
from procedures.recommend import RECOMMEND
from procedures.report import REPORT
from procedures.resume import RESUME
from procedures.status import STATUS
from procedures.suspend import SUSPEND
from procedures.unprotect import UNPROTECT
from procedures.vacuum import VACUUM


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
