"""``CALL use.help()`` and ``CALL use.help('optimize')``: prints the declarations of procedures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from catalog.errors import UnknownNameError
from procedures.declare.declaration import Call, Procedure
from procedures.declare.operation import operation
from procedures.declare.result_rows import ShownRow
from procedures.declare.signature import DETAILS


@dataclass(frozen=True)
class HelpRow(ShownRow):
    """A procedure, one of its parameters, or its result columns.

    Attributes:
        name: of the procedure or parameter.
        type: SQL type of a parameter; ``procedure`` or ``columns``.
        default: of a parameter, as SQL.
        description: a sentence, or the columns as DDL.
    """

    name: str
    type: str
    default: str | None
    description: str


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
