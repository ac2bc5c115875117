"""``CALL use.help()`` and ``CALL use.help('optimize')``: prints the declarations of procedures."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame

from catalog.errors import UnknownNameError
from catalog.jvm.local_rows import local_data_frame
from procedures.declare.declaration import DETAILS, Call, Parameter, Procedure

_Row = tuple[str, str, "str | None", str]
_RESULT = "name string, type string, default string, description string"


def help_procedure(known: Callable[[], Mapping[str, Procedure]]) -> Procedure:
    """Returns the help procedure.

    Args:
        known: returns the registered procedures at the time of the call.
    """

    def run(call: Call) -> DataFrame:
        name = call["procedure"]
        registered = known()
        if name is None:
            rows: list[_Row] = [
                (p.name, "procedure", None, f"{p.signature}: {p.doc}") for _, p in sorted(registered.items())
            ]
        else:
            key = name.lower().removeprefix("use.")
            if key not in registered:
                raise UnknownNameError.of("procedure", name, registered)
            rows = _of(registered[key])
        return local_data_frame(call.spark, rows, _RESULT)

    return Procedure(
        "help",
        "Lists the procedures, or the parameters and result columns of one procedure.",
        (Parameter("procedure", "STRING", "Name of a procedure; all procedures by default.", None),),
        _RESULT,
        run,
    )


def _of(procedure: Procedure) -> list[_Row]:
    rows: list[_Row] = [(procedure.name, "procedure", None, f"{procedure.signature}: {procedure.doc}")]
    for parameter in procedure.parameters:
        default = "(required)" if parameter.required else parameter.default_text
        rows.append((parameter.name, parameter.type, default, parameter.doc))
    rows.append(("result", "columns", None, procedure.result))
    if procedure.short:
        rows.append((f"result without {DETAILS}", "columns", None, procedure.short_result))
    return rows
