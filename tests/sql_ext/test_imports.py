"""Modules import each other in one direction only; import-linter checks the packages."""

from graphlib import TopologicalSorter

import grimp


def test_no_module_imports_itself_by_a_detour():
    graph = grimp.build_graph("otree", "catalog", "procedures", "sql_ext")
    imported = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    # Raises CycleError, whose text names the modules of a circle.
    TopologicalSorter(imported).prepare()
