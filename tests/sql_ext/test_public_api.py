"""The public API of ``sql_ext`` is pinned in ``tests/contracts/public_api.json``, and documented whole.

``USE_REWRITE_CONTRACTS=1 pytest tests/sql_ext/test_public_api.py`` writes the file anew.
"""

import difflib
import enum
import inspect
import json
import os
import re
import runpy
from dataclasses import is_dataclass
from pathlib import Path

import pytest

import sql_ext
from catalog.errors import InvalidArgumentError

ROOT = Path(__file__).resolve().parents[2]
PINNED = ROOT / "tests" / "contracts" / "public_api.json"
CHECKER = ROOT / "docs" / "check_api_reference.py"


def _public_api():
    return {name: _described(getattr(sql_ext, name)) for name in sql_ext.__all__}


def _described(item):
    if not inspect.isclass(item):
        # Users import names from sql_ext; the module of a type is no part of the contract.
        return re.sub(r"\b(procedures|catalog)(\.\w+)*\.", "", str(inspect.signature(item)))
    if issubclass(item, enum.Enum):
        return {"values": [member.value for member in item]}
    members = {
        name: "property" if isinstance(member, property) else str(inspect.signature(_function(member)))
        for name, member in sorted(vars(item).items())
        if not name.startswith("_") and (isinstance(member, (property, classmethod)) or inspect.isfunction(member))
    }
    kind = {"bases": [base.__name__ for base in item.__bases__ if base is not object]}
    made = {"fields": _fields(item)} if is_dataclass(item) else {"made by": str(inspect.signature(item))}
    described = {**kind, **made, "members": members, "attributes": [] if is_dataclass(item) else _attributes(item)}
    return {key: value for key, value in described.items() if value}


def _attributes(item):
    found = {**inspect.get_annotations(item), **{k: v for k, v in vars(item).items() if not callable(v)}}
    return sorted(name for name in found if not name.startswith("_"))


def _function(member):
    return member.__func__ if isinstance(member, classmethod) else member


def _fields(item):
    # A default that is an object of its own has an address, which is another one each time.
    return {
        name: f"{field.annotation}{'' if field.default is inspect.Parameter.empty else ' = ' + _default(field.default)}"
        for name, field in inspect.signature(item).parameters.items()
    }


def _default(value):
    return "…" if " at 0x" in repr(value) else repr(value)


def test_contract_public_api():
    now = json.dumps(_public_api(), indent=2, ensure_ascii=False) + "\n"
    if os.environ.get("USE_REWRITE_CONTRACTS"):
        PINNED.write_text(now, encoding="utf-8")
    pinned = PINNED.read_text(encoding="utf-8") if PINNED.is_file() else ""
    diff = "".join(difflib.unified_diff(pinned.splitlines(True), now.splitlines(True), "pinned", "now"))
    assert not diff, (
        f"The public API changed. If users may see that, set USE_REWRITE_CONTRACTS=1 and run this test:\n{diff}"
    )


def test_every_public_name_has_a_docstring():
    for name in sql_ext.__all__:
        item = getattr(sql_ext, name)
        # Dataclasses get one that only repeats their fields.
        assert inspect.getdoc(item), name
        assert not (inspect.getdoc(item) or "").startswith(f"{name}("), name


def test_every_public_name_is_in_the_reference():
    assert not runpy.run_path(str(CHECKER))["missing_names"]()


def test_the_check_of_the_reference_notices_what_is_missing():
    missing_names = runpy.run_path(str(CHECKER))["missing_names"]
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    assert missing_names(page.replace("store_quantiles", "…")) == ["Maintenance.store_quantiles"]
    assert missing_names(page.replace("metastore_summary", "…")) == ["metastore_summary"]
    assert "Table" in missing_names("")


@pytest.mark.parametrize("use", [sql_ext.attach, sql_ext.metastore_summary, lambda spark: sql_ext.table(spark, "t")])
def test_what_is_no_session_is_refused(use):
    with pytest.raises(InvalidArgumentError, match="spark = NULL is not accepted: a SparkSession is expected"):
        use(None)
