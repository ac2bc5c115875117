"""The directive ``declared``, which writes a part of the reference from the declarations in the code.

A reference page names what it holds, ``{declared} procedures``; what is listed cannot differ from what runs.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import re
from collections.abc import Callable, Iterable, Sequence

import click
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from catalog import errors
from catalog.properties.names import PROPERTIES
from catalog.properties.optimization_properties import option_key
from catalog.settings.session_settings import SESSION_SETTINGS
from catalog.settings.setting import Setting
from catalog.system_tables import SYSTEM_TABLES
from catalog.virtual_tables import VIRTUAL_TABLES
from procedures.calls.registry import procedures
from procedures.declare.declaration import Procedure
from procedures.declare.signature import Parameter
from procedures.selection import DEFAULT_STRATEGIES, strategies
from procedures.service.service_settings import SERVICE_SETTINGS

COMMAND = "use-spark"
COLUMN_WIDTH = 88  # characters of code that the site shows without scrolling
_COLUMN = re.compile(r", (?=\w+ )")


def command_group() -> click.Group:
    """The command line, from where the installed command starts.

    Raises:
        LookupError: it starts in a module without one.
    """
    (entry,) = importlib.metadata.entry_points(group="console_scripts", name=COMMAND)
    module = importlib.import_module(entry.module)
    for value in vars(module).values():
        if isinstance(value, click.Group) and value.name == COMMAND:
            return value
    raise LookupError(f"{entry.module} has no click.Group of the name {COMMAND}.")


def commands() -> dict[str, click.Command]:
    """The commands by name. The group imports each of them when it is asked for."""
    group = command_group()
    context = click.Context(group, info_name=COMMAND)
    made = {name: group.get_command(context, name) for name in group.list_commands(context)}
    return {name: command for name, command in made.items() if command is not None}


def columns_of(ddl: str) -> list[tuple[str, str]]:
    """Names and types of a schema in DDL, as declarations write it: ``a string, b struct<c: int>``."""
    pairs = (column.split(" ", 1) for column in _COLUMN.split(_outside_brackets(ddl)))
    return [(name, _type(data_type.replace("\0", ","))) for name, data_type in pairs]


def _type(text: str) -> str:
    """The type in capitals, as ``DESCRIBE`` names it, the fields of its structs as they are."""
    return re.sub(r"\b\w+\b(?!:)", lambda word: word[0].upper(), text).replace("TIMESTAMP_LTZ", "TIMESTAMP")


def _outside_brackets(ddl: str) -> str:
    """The text with the commas inside ``<…>`` and ``(…)`` replaced, so that only columns are separated by commas."""
    depth, text = 0, ""
    for sign in ddl:
        depth += (sign in "<(") - (sign in ">)")
        text += "\0" if sign == "," and depth else sign
    return text


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines) + "\n"


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _parameters(declared: Sequence[Parameter]) -> str:
    rows = [
        (_code(p.name), _code(p.type), "required" if p.required else _code(p.default_text), _plain(p.doc))
        for p in declared
    ]
    return _table(("parameter", "type", "default", "meaning"), rows) if rows else "It has no parameters.\n"


def _columns(ddl: str, header: str = "column") -> str:
    # A browser wraps code at blanks only.
    return _table(
        (header, "type"),
        ((_code(name), _code(re.sub(r",(?=\S)", ", ", data_type))) for name, data_type in columns_of(ddl)),
    )


def _call(procedure: Procedure) -> str:
    """The signature, with parameters below each other if one line is longer than its column."""
    line = f"CALL {procedure.signature}"
    if len(line) <= COLUMN_WIDTH:
        return line
    parameters = ",\n    ".join(parameter.signature for parameter in procedure.parameters)
    return f"CALL use.{procedure.name}(\n    {parameters})"


def procedure_pages() -> str:
    """All procedures: signature, parameters, result columns."""
    parts = [
        f"## use.{name}\n\n{_plain(found.doc)}\n\n```text\n{_call(found)}\n```\n\n"
        f"{_parameters(found.parameters)}\n{_columns(found.result, 'result column')}"
        for name, found in sorted(procedures().items())
    ]
    return "\n".join(parts)


def strategy_pages() -> str:
    """All strategies with their options, and the table properties that give the same."""
    parts = [f"`CALL use.optimize` asks, in this order, {' and '.join(map(_code, DEFAULT_STRATEGIES))}.\n"]
    for name, found in strategies().items():
        rows = [
            (
                _code(o.name),
                _code(option_key(o.name)),
                _code(o.type),
                _code(o.default_text) or "required",
                _with_accepted(o.doc, o.accepted),
            )
            for o in found.options
        ]
        options = _table(("option", "table property", "type", "default", "meaning"), rows) if rows else "No options.\n"
        aliases = f" Also accepted as {' or '.join(map(_code, found.aliases))}." if found.aliases else ""
        parts.append(f"## {name}\n\n{_plain(found.doc)}{aliases}\n\n{options}")
    return "\n".join(parts)


def property_pages() -> str:
    """The table properties that owners set, options of strategies aside."""
    return _settings("property", PROPERTIES.values())


def setting_pages() -> str:
    """The settings of a session and of the automatic service."""
    return _settings("conf", (*SESSION_SETTINGS, *SERVICE_SETTINGS))


def _settings(header: str, declared: Iterable[Setting[object]]) -> str:
    rows = [
        (_code(s.name), s.type.name, _default(s), _with_accepted(s.doc, s.type.accepted) + _aliases(s.aliases))
        for s in declared
    ]
    return _table((header, "type", "default", "meaning"), rows)


def _with_accepted(doc: str, accepted: str) -> str:
    return f"{_plain(doc)} Accepted: {_plain(accepted)}." if accepted else _plain(doc)


def _aliases(names: Iterable[str]) -> str:
    return "".join(f" Also accepted as {_code(name)}." for name in names)


def _default(setting: Setting[object]) -> str:
    return _code(setting.default) if setting.default else _plain(setting.unset)


def virtual_table_pages() -> str:
    """Schemas of the virtual tables, and of those about all tables."""
    parts = [f"## {name}\n\n{_columns(table.schema)}" for name, table in VIRTUAL_TABLES.items()]
    parts += [f"## system_lake_tables.{name}\n\n{_columns(table.schema)}" for name, table in SYSTEM_TABLES.items()]
    return "\n".join(parts)


def error_pages() -> str:
    """The classes of errors with their codes."""
    found = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, errors.UseError)]
    found.sort(key=lambda c: (c is not errors.UseError, c.__name__))
    rows = [(_code(c.__name__), _code(c.code), _code(c.sql_state), (c.__doc__ or "").splitlines()[0]) for c in found]
    return _table(("class", "code", "SQLSTATE", "raised when"), rows)


def command_pages() -> str:
    """The commands of the command line with their options."""
    parent = click.Context(command_group(), info_name=COMMAND)
    parts = []
    for name, command in sorted(commands().items()):
        context = click.Context(command, parent=parent, info_name=name)
        usage = f"{context.command_path} {' '.join(command.collect_usage_pieces(context))}"
        records = [param.get_help_record(context) for param in command.get_params(context)]
        # A browser wraps code at blanks only.
        rows = [
            (_code(declared.replace("|", " | ") if len(declared) > COLUMN_WIDTH // 2 else declared), _plain(text))
            for declared, text in filter(None, records)
            if text  # arguments are in the usage
        ]
        help_text = _plain(inspect.cleandoc(command.help or ""))
        parts.append(
            f"## {COMMAND} {name}\n\n{help_text}\n\n```text\n{usage}\n```\n\n{_table(('option', 'meaning'), rows)}"
        )
        if command.epilog:
            parts.append(f"```text\n{inspect.cleandoc(command.epilog).replace(chr(8), '').strip()}\n```\n")
    return "\n".join(parts)


def _plain(text: str) -> str:
    """A sentence of a declaration without what Markdown would take for markup."""
    return re.sub(r"([<>\[\]*_`])", r"\\\1", text.replace("\b", "").replace("\f", ""))


TOPICS: dict[str, Callable[[], str]] = {
    "procedures": procedure_pages,
    "strategies": strategy_pages,
    "properties": property_pages,
    "settings": setting_pages,
    "virtual-tables": virtual_table_pages,
    "errors": error_pages,
    "commands": command_pages,
}


class Declared(SphinxDirective):
    """``{declared} <topic>``: one of ``TOPICS``, as Markdown in the place of the directive."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """See ``Directive.run``."""
        topic = self.arguments[0]
        if topic not in TOPICS:
            raise self.error(f"declared: '{topic}' is none of {', '.join(TOPICS)}.")
        return self.parse_text_to_nodes(TOPICS[topic](), allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("declared", Declared)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
