"""What users build on is pinned in ``tests/contracts``: a change shows as a diff, and is made on purpose.

``USE_REWRITE_CONTRACTS=1 pytest tests/sql_ext/test_contracts.py`` writes the files anew.
"""

import ast
import difflib
import importlib
import inspect
import json
import os
import pkgutil
import re
from dataclasses import fields
from pathlib import Path

import pytest
from click.testing import CliRunner
from stored_documents import stored_documents

import catalog
import procedures
import sql_ext
from catalog import errors
from catalog.properties import index_properties as properties
from catalog.properties import optimization_properties, target_file_size
from catalog.pruning.join_reasons import JoinReason
from catalog.pruning.read_planning import SampleReason
from catalog.settings.setting import Setting
from catalog.system_tables import SYSTEM_TABLES
from catalog.virtual_tables import VIRTUAL_TABLES
from otree import block
from otree.revision import LAST_REVISION_KEY
from procedures.calls.registry import built_in_procedures
from procedures.calls.registry import procedures as registered
from procedures.groups.consolidation_plan import Reason
from procedures.insight.skipping.reasons import SkippingReason
from procedures.selection import DEFAULT_STRATEGIES, strategies
from sql_ext import readers
from sql_ext.class_archive import FOLDER_VARIABLE
from sql_ext.commands.command_line import cli
from sql_ext.commands.command_names import SECTIONS
from sql_ext.diagnosis.log_facts import LogFacts
from sql_ext.diagnosis.many_tables import Diagnoses, UnreadableTable
from sql_ext.diagnosis.prediction import ReadShares
from sql_ext.diagnosis.results import ColumnDiagnosis, TableDiagnosis
from sql_ext.diagnosis.verdict import Verdict

FOLDER = Path(__file__).resolve().parents[1] / "contracts"
ROOT = FOLDER.parents[1]


def _procedures():
    return {
        p.name: {
            "doc": p.doc,
            "parameters": {
                q.name: f"{q.type} {q.default_sql or '(required)'} | {q.accepted or q.not_blank or 'any'} | {q.doc}"
                for q in p.parameters
            },
            "result": re.split(r", (?=\w+ )", p.result),
            "short": list(p.short),
        }
        for p in sorted(built_in_procedures(), key=lambda p: p.name)
    }


def _strategies():
    options = {
        name: {
            o.name: f"{o.type} {o.default_sql} | {o.accepted or o.not_blank or 'any'} | {o.doc}"
            for o in strategy.options
        }
        for name, strategy in sorted(strategies().items())
    }
    aliases = {alias: name for name, found in sorted(strategies().items()) for alias in found.aliases}
    return {"default": list(DEFAULT_STRATEGIES), "aliases": aliases, "options": options}


def _virtual_tables():
    return {name: re.split(r", (?=\w+ )", table.schema) for name, table in sorted(VIRTUAL_TABLES.items())}


def _system_tables():
    return {name: re.split(r", (?=\w+ )", table.schema) for name, table in sorted(SYSTEM_TABLES.items())}


def _errors():
    found = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, errors.UseError)]
    unknown = {
        errors.UnknownNameError.of(kind, "", ()).code for kind in _words(r'UnknownNameError\.of\(\s*"([a-z ]+)"')
    }
    return {
        "classes": {c.__name__: f"{c.code} {c.sql_state}" for c in found},
        "codes": sorted(_words(r"(?<![.\w])USE_[A-Z]+(?:_[A-Z]+)+") - {FOLDER_VARIABLE} | unknown),
    }


def _words(pattern):
    """What matches in the Python and Scala sources."""
    folders = [ROOT / name for name in ("catalog", "procedures", "sql_ext", "jars-build/src/main")]
    files = [f for folder in folders for f in folder.rglob("*") if f.suffix in (".py", ".scala", ".java")]
    return {found for f in files for found in re.findall(pattern, f.read_text(encoding="utf-8"))}


def _names():
    return {
        "properties": sorted(
            {
                v
                for m in (properties, target_file_size, optimization_properties)
                for k, v in vars(m).items()
                if k.endswith("_KEY")
            }
            - {LAST_REVISION_KEY}
            | {setting.name for setting in optimization_properties.OPTIMIZATION_SETTINGS}
        ),
        "settings": sorted(_words(r"spark\.qbeast\.[a-z.-]+[a-z]")),
        "spark_conf": {k: v for k, v in sql_ext.spark_conf().items() if "catalog" in k or "extensions" in k},
        "file_tags": sorted(v for k, v in vars(block).items() if k.endswith("_TAG")),
        "python": sorted(sql_ext.__all__),
    }


def _settings():
    """Table properties, settings of the session and of the service, wherever they are declared.

    Options of strategies, whose names have no dot, are in another contract.
    """
    found = {}
    for room in (catalog, procedures):
        for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            values = list(vars(importlib.import_module(module.name)).values())
            values += [item for value in values if isinstance(value, dict) for item in value.values()]
            found |= {value.name: value for value in values if isinstance(value, Setting) and "." in value.name}
    return {
        name: f"{s.type.name}: {s.type.accepted} | {s.default if s.default is not None else s.unset} | {s.doc}"
        + "".join(f" | also {alias}" for alias in s.aliases)
        for name, s in sorted(found.items())
    }


def _commands():
    """The help of every command of ``use-spark``."""
    names = [name for section in SECTIONS.values() for name in section]
    cli._help_option = None
    for name in names:
        # Click keeps the help option of a command that another test has run by itself, without the group's -h.
        vars(cli.commands[name]).update(_help_option=None)
    shown = {name: CliRunner().invoke(cli, [*name.split(), "--help"], terminal_width=110) for name in ["", *names]}
    return {f"use-spark {name}".strip(): result.output.splitlines() for name, result in shown.items()}


def _codes():
    """Reason codes, and other words in capitals that rows and events have."""
    files = [f for folder in ("catalog", "procedures", "sql_ext") for f in (ROOT / folder).rglob("*.py")]
    trees = [ast.parse(f.read_text(encoding="utf-8")) for f in files]
    words = {node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    pattern = re.compile(
        r"(?!SPARK_|JAVA_|JDK_|PYSPARK_|YARN_|XDG_|HADOOP_|COLUMN_STATS_|HASH_|BYTE_ARRAY|FIXED_LEN_)[A-Z]+(_[A-Z]+)+"
    )
    enums = {str(item.value) for item in (*Reason, *SkippingReason, *SampleReason, *JoinReason)}
    found = {w for w in words if isinstance(w, str) and pattern.fullmatch(w) and not w.startswith("USE_")}
    return sorted(found | enums)


def _readers():
    facts = {f"Scan.{f.name}": str(f.type) for f in fields(readers.Scan) if not f.name.startswith("_")}
    return (
        {"scan": str(inspect.signature(readers.scan)), "diagnose": str(inspect.signature(readers.diagnose))}
        | facts
        | {
            f"{kind.__name__}.{f.name}": str(f.type)
            for kind in (Diagnoses, UnreadableTable, TableDiagnosis, ColumnDiagnosis, ReadShares, LogFacts, Verdict)
            for f in fields(kind)
        }
        | {
            f"Scan.{name}": str(inspect.signature(member)) if inspect.isfunction(member) else "property"
            for name, member in sorted(vars(readers.Scan).items())
            if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property))
        }
    )


CONTRACTS = {
    "commands": _commands,
    "codes": _codes,
    "readers": _readers,
    "documents": stored_documents,
    "procedures": _procedures,
    "strategies": _strategies,
    "virtual_tables": _virtual_tables,
    "system_tables": _system_tables,
    "errors": _errors,
    "names": _names,
    "settings": _settings,
}


@pytest.mark.parametrize("name", CONTRACTS)
def test_contract(name):
    file = FOLDER / f"{name}.json"
    now = json.dumps(CONTRACTS[name](), indent=2, ensure_ascii=False) + "\n"
    if os.environ.get("USE_REWRITE_CONTRACTS"):
        file.write_text(now, encoding="utf-8")
    pinned = file.read_text(encoding="utf-8") if file.is_file() else ""
    diff = "".join(difflib.unified_diff(pinned.splitlines(True), now.splitlines(True), "pinned", "now"))
    assert not diff, (
        f"The contract '{name}' changed. If users may see that, set USE_REWRITE_CONTRACTS=1 and run this test:\n{diff}"
    )


def test_every_contract_file_has_its_test():
    assert {f.stem for f in FOLDER.glob("*.json")} == {*CONTRACTS, "public_api"}


def test_every_parameter_is_documented():
    for procedure in registered().values():
        for parameter in procedure.parameters:
            assert parameter.doc.endswith("."), f"{procedure.name}.{parameter.name}"
    for strategy in strategies().values():
        assert strategy.doc.endswith(".")
        assert all(option.doc.endswith(".") for option in strategy.options)


def test_rooms_say_what_they_hold():
    assert all(room.__doc__ for room in (catalog, procedures, sql_ext))
