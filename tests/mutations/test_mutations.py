"""The list of mutations fits the sources; ``run.py`` shows that each is caught."""

import ast
from pathlib import Path

import pytest
from mutations import ROOT, mutations
from shard import Shard


@pytest.mark.parametrize("mutation", mutations(), ids=lambda mutation: mutation.name)
def test_it_fits_its_file_and_names_a_quick_test(mutation):
    text = (ROOT / mutation.file).read_text(encoding="utf-8")
    assert text.count(mutation.before) == 1
    ast.parse(text.replace(mutation.before, mutation.after))
    path, _, name = mutation.caught_by.partition("::")
    tests = {
        node.name: node
        for node in ast.parse(Path(ROOT / path).read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
    }
    assert not name or not any("slow" in ast.unparse(mark) for mark in tests[name].decorator_list)


def test_names_are_unique_and_there_are_at_least_forty():
    names = [mutation.name for mutation in mutations()]
    assert len(names) == len(set(names)) >= 40


def test_shards_have_each_mutation_once():
    shards = [Shard(f"{number}/3") for number in (1, 2, 3)]
    assert all(sum(shard.has(mutation.name) for shard in shards) == 1 for mutation in mutations())
    for text in ("0/3", "4/3", "x", "1"):
        with pytest.raises(SystemExit, match=f"SHARD = {text}: a part such as 1/4"):
            Shard(text)
