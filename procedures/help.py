"""``CALL use.help()`` and ``CALL use.help('optimize')``: printed from the declarations."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame

from catalog.errors import UnknownNameError
from procedures.declaration import Call, Parameter, Procedure

_Row = tuple[str, str, "str | None", str]
_RESULT = "name string, type string, default string, description string"


def help_procedure(known: Callable[[], Mapping[str, Procedure]]) -> Procedure:
    """Returns the help procedure over what ``known`` gives at the time of the call."""

    def run(call: Call) -> DataFrame:
        name = call["procedure"]
        found = known()
        if name is None:
            rows: list[_Row] = [
                (p.name, "procedure", None, f"{p.signature}: {p.doc}") for _, p in sorted(found.items())
            ]
        else:
            wanted = name.lower().removeprefix("use.")
            if wanted not in found:
                raise UnknownNameError.of("procedure", name, found)
            rows = _of(found[wanted])
        return call.spark.createDataFrame(rows, _RESULT)

    return Procedure(
        "help",
        "Lists the procedures, or the parameters and result columns of one.",
        (Parameter("procedure", "STRING", "Name of a procedure; all when left out.", None),),
        _RESULT,
        run,
    )


def _of(procedure: Procedure) -> list[_Row]:
    rows: list[_Row] = [(procedure.name, "procedure", None, f"{procedure.signature}: {procedure.doc}")]
    for parameter in procedure.parameters:
        default = "(required)" if parameter.required else parameter.default_text
        rows.append((parameter.name, parameter.type, default, parameter.doc))
    rows.append(("result", "columns", None, procedure.result))
    return rows
