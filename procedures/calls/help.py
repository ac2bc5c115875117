"""``CALL use.help()`` and ``CALL use.help('optimize')``: prints the declarations of procedures."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from catalog.errors import UnknownNameError
from procedures.declare.declaration import Call, Procedure
from procedures.declare.operation import operation
from procedures.declare.result_rows import HelpRow
from procedures.declare.signature import DETAILS


def help_procedure(known: Callable[[], Mapping[str, Procedure]]) -> Procedure:
    """Returns the help procedure.

    Args:
        known: returns the registered procedures at the time of the call.
    """

    def help(_: Call, procedure: str | None = None) -> list[HelpRow]:  # noqa: A001, as SQL names it
        """Lists the procedures, or the parameters and result columns of one procedure.

        Args:
            procedure: Name of a procedure; all procedures by default.
        """
        registered = known()
        if procedure is None:
            return [_summary(p) for _, p in sorted(registered.items())]
        key = procedure.lower().removeprefix("use.")
        if key not in registered:
            raise UnknownNameError.of("procedure", procedure, registered)
        return _rows(registered[key])

    return operation(help)


def _summary(procedure: Procedure) -> HelpRow:
    return HelpRow(procedure.name, "procedure", None, f"{procedure.signature}: {procedure.doc}")


def _rows(procedure: Procedure) -> list[HelpRow]:
    rows = [_summary(procedure)]
    for parameter in procedure.parameters:
        default = "(required)" if parameter.required else parameter.default_text
        rows.append(HelpRow(parameter.name, parameter.type, default, parameter.doc))
    rows.append(HelpRow("result", "columns", None, procedure.result))
    if procedure.short:
        rows.append(HelpRow(f"result without {DETAILS}", "columns", None, procedure.short_result))
    return rows
