"""The bill of materials and the audit of dependencies, without a network."""

import json

import audit
import pytest

FOUND = {
    "name": "a",
    "version": "1",
    "vulns": [{"id": "X-1", "fix_versions": ["2"]}, {"id": "X-2", "fix_versions": []}],
}
SOUND, SKIPPED = {"name": "b", "version": "1", "vulns": []}, {"name": "c", "version": "1", "skip_reason": "not found"}


def test_what_an_answer_of_the_index_means():
    assert audit.verdict({"dependencies": [SOUND]}) == (0, ["no known vulnerability in 1 packages"])
    code, lines = audit.verdict({"dependencies": [SOUND, FOUND, SKIPPED]})
    assert (code, lines[:2]) == (audit.VULNERABLE, ["a 1: X-1, fixed in 2", "a 1: X-2, fixed in none"])
    # An index that knows no package finds no vulnerability, which is no good news.
    for answer in ({"dependencies": [SOUND, SKIPPED]}, {"dependencies": []}, {}):
        code, lines = audit.verdict(answer)
        assert code == audit.UNKNOWN
        assert lines[0].startswith("No audit: ")


@pytest.mark.parametrize("output", ["", "no JSON", "[]x"])
def test_an_audit_without_an_answer_says_so(monkeypatch, capsys, output):
    outcome = type("Outcome", (), {"stdout": output, "stderr": "line\nthe index is away\n"})
    monkeypatch.setattr(audit.subprocess, "run", lambda *_, **__: outcome)
    assert audit.audit([]) == audit.UNKNOWN
    assert capsys.readouterr().out == "No audit: the index is away\n"


def test_the_bill_has_what_users_install_and_nothing_of_the_tools():
    names = audit.closure(audit.OF_USERS)
    assert {"pyspark", "delta-spark", "py4j", "numpy", "pyarrow", "starlette", "duckdb"} <= names
    assert not {"pytest", "ruff", "mypy", "sphinx", "use-spark"} & names
    component = {"type": "library", "version": "1"}
    document = audit.bill_of_materials(
        {
            "metadata": {"component": {"bom-ref": "main"}},
            "components": [
                {**component, "name": "PyArrow", "bom-ref": "p"},
                {**component, "name": "pytest", "bom-ref": "t"},
            ],
            "dependencies": [{"ref": "main", "dependsOn": ["p", "t"]}, {"ref": "p"}, {"ref": "t"}],
        }
    )
    listed = [each["name"] for each in document["components"]]
    assert "PyArrow" in listed
    assert "pytest" not in listed
    assert "delta-spark_4.2_2.13" in listed
    (of_main,) = [each for each in document["dependencies"] if each["ref"] == "main"]
    assert of_main["dependsOn"][0] == "p"
    assert "t" not in of_main["dependsOn"]
    assert len(of_main["dependsOn"]) == len(document["components"])
    json.dumps(document)
