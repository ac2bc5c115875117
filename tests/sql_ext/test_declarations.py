"""The stored declarations, from which commands are built, are those of the registry."""

import os

from catalog.virtual_tables import VIRTUAL_TABLES
from procedures.calls.registry import built_in_procedures
from procedures.selection import built_in_strategies
from sql_ext.commands.declarations import FILE, Declarations, declarations, text_of


def _registered():
    strategies = {strategy.name: tuple(strategy.aliases) for strategy in built_in_strategies()}
    return Declarations({p.name: p for p in built_in_procedures()}, tuple(VIRTUAL_TABLES), strategies)


def test_contract_of_the_stored_declarations():
    """``USE_REWRITE_CONTRACTS=1`` writes it anew."""
    now = text_of(_registered())
    if os.environ.get("USE_REWRITE_CONTRACTS"):
        FILE.write_text(now, encoding="utf-8")
    assert FILE.read_text(encoding="utf-8") == now, "set USE_REWRITE_CONTRACTS=1 and run this test"


def test_a_stored_parameter_checks_as_the_declared_one():
    for procedure in built_in_procedures():
        stored = declarations().signatures[procedure.name]
        assert stored.signature == procedure.signature
        for parameter, declared in zip(stored.parameters, procedure.parameters, strict=True):
            assert parameter.required == declared.required
            assert parameter.required or parameter.check(None) == declared.check(None)
