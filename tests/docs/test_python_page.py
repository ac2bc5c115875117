"""The signatures and fields on the page of the Python API are those of the code."""

import dataclasses
import inspect
import re

import pytest
from pages import ROOT

import sql_ext
from sql_ext import Inspect, Maintenance

PAGE = (ROOT / "docs" / "python.md").read_text("utf-8")
CALLS = {
    name: arguments
    for line in PAGE.splitlines()
    for name, arguments in re.findall(r"^\| `(\w+)\(([^`…]*)\)` \| .* \| .* \|$", line)
}
FIELDS = {
    name: re.findall(r"`(\w+)`", fields)
    for names, fields in re.findall(r"^\| ((?:`\w+Row`(?:, )?)+) \| (.*) \|$", PAGE, re.MULTILINE)
    for name in re.findall(r"`(\w+)`", names)
}


def _methods():
    for owner in (Maintenance, Inspect):
        for name, method in inspect.getmembers(owner, inspect.isfunction):
            if name in CALLS:
                yield pytest.param(method, id=f"{owner.__name__}.{name}")


@pytest.mark.parametrize("method", list(_methods()))
def test_signatures(method):
    parameters = list(inspect.signature(method).parameters.values())[1:]
    shown = [
        entry.strip().split("=")[0] for entry in CALLS[method.__name__].split(", ") if entry.strip() not in ("", "*")
    ]
    assert shown == [parameter.name for parameter in parameters]


@pytest.mark.parametrize("name", list(FIELDS))
def test_fields_of_rows(name):
    assert FIELDS[name] == [field.name for field in dataclasses.fields(getattr(sql_ext, name))]


def test_all_of_them_are_found():
    assert len(CALLS) > 20
    assert len(FIELDS) > 15
