"""The way of ``CALL use.optimize`` from the bridge to the commit: which modules it enters, and what it does once."""

import importlib
import inspect
from functools import cached_property

import pytest
from call_walk import walked

COMMIT = "catalog.jvm.table_transaction.TableTransaction.commit"
# docs/architecture.md describes them.
MOST_MODULES, MOST_IN_PROCEDURES = 95, 32
# A module passes the call on if the call goes from it to another one; values and arithmetic end there. Not counted are
# the index maths and the border to the JVM.
MOST_THAT_PASS_ON = 43
# What may happen again, and why.
AGAIN = {
    "procedures.rewrite.inputs.Inputs.begin": "a transaction begins again on the version that has a new revision",
    "procedures.layout.index_columns.columns_of": "rows are measured in the newest revision and placed in the new one",
    "procedures.layout.index_columns.finite_value": "once per column",
    "procedures.layout.index_columns.IndexColumns.cell": "one sample in each of the two revisions",
    "procedures.layout.step.ignore_step": "once per step",
}


@pytest.fixture
def way(spark, new_table):
    """The way of an optimization whose rows need a new revision, on a table that was optimized before."""
    table = new_table("id bigint, x double", index="id,x")
    for number in range(4):
        first = number * 1000
        spark.sql(f"INSERT INTO {table.name} SELECT id, rand({number}) FROM range({first}, {first + 1000}, 1, 1)")
        if number == 1:
            table.index()
    with walked(COMMIT) as walk:
        (row,) = spark.sql(f"CALL use.optimize('{table.name}')").collect()
    assert (row.state, row.rows) == ("committed", 2000)
    assert "made revision 2" in row.message
    assert walk.is_over
    return walk


def test_a_call_enters_few_modules_and_does_each_step_once(way):
    in_procedures = [module for module in way.modules if module.startswith("procedures.")]
    assert len(way.modules) <= MOST_MODULES, way.modules
    assert len(in_procedures) <= MOST_IN_PROCEDURES, in_procedures
    passing = [module for module in way.passing() if not module.startswith(("otree.", "catalog.jvm."))]
    assert len(passing) <= MOST_THAT_PASS_ON, passing
    storeys = ("procedures.loop.", "procedures.rewrite.", "procedures.layout.")
    repeated = {name for name, count in way.calls.items() if count > 1 and name.startswith(storeys)}
    assert {name for name in repeated if not _is_of_a_value(name)} <= set(AGAIN)
    # What is decided once, by name: a rename must not make this test empty.
    for decision in (
        "procedures.loop.planner.TablePlanner.plan",
        "procedures.layout.row_measures.measure_rows",
        "procedures.layout.target.revision_for",
        "procedures.layout.target.target_for_new_rows",
        "procedures.layout.row_layout.lay_out",
    ):
        assert way.calls[decision] == 1, decision


def _is_of_a_value(name):
    """Whether it is a property."""
    module, *rest = name.rsplit(".", 2) if name.split(".")[-2][:1].isupper() else (name.rpartition(".")[0],)
    if not rest:
        return False
    owner = getattr(importlib.import_module(module), rest[0])
    return isinstance(inspect.getattr_static(owner, rest[1]), property | cached_property)
