"""The notebooks run from their first cells to their last, and show nothing that a reader would take for a problem."""

import json
import re
import sys

import pytest
from pages import ROOT

FLIGHTS, LATE = (ROOT / "examples" / name for name in ("flights.ipynb", "late_flights.ipynb"))


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """A kernel of the interpreter that runs the tests, whatever kernels the machine has."""
    folder = tmp_path / "jupyter" / "kernels" / "python3"
    folder.mkdir(parents=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (folder / "kernel.json").write_text(json.dumps({"argv": command, "display_name": "tests", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def _shapes(cells):
    """For each cell of code, the kinds of its outputs."""
    return [
        [
            tuple(sorted(output.get("data", [output["output_type"]])))
            for output in cell["outputs"]
            if not _is_error(output)
        ]
        for cell in cells
        if cell["cell_type"] == "code"
    ]


def _is_error(output):
    return output.get("name") == "stderr"


@pytest.mark.parametrize("path", [FLIGHTS, LATE], ids=lambda path: path.stem)
def test_notebook_is_stored_with_its_outputs(path):
    cells = [c for c in json.loads(path.read_text(encoding="utf-8"))["cells"] if c["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1)), "run make notebook"
    assert sum(bool(cell["outputs"]) for cell in cells) >= 6
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert not any(_is_error(output) or output["output_type"] == "error" for output in outputs)
    # Nothing of the machine that ran it.
    assert not re.search(r"/tmp|/home|/root|/work|file:", json.dumps(outputs))


@pytest.mark.slow
@pytest.mark.filterwarnings("default::DeprecationWarning", "default::ResourceWarning")
@pytest.mark.parametrize("path", [FLIGHTS, LATE], ids=lambda path: path.stem)
def test_notebook_runs(kernel, tmp_path, monkeypatch, path):
    import nbformat
    from nbclient import NotebookClient

    # Kernels show what the JVM writes, but not below pytest: readers would see more than the test.
    monkeypatch.delenv("PYTEST_CURRENT_TEST", raising=False)
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=900, resources={"metadata": {"path": str(tmp_path)}}).execute()
    streams = [
        (output.name, output.text)
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if output.output_type == "stream"
    ]
    # A progress bar is drawn again and again in one line; the last state of it stays.
    stored = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert _shapes(notebook.cells) == _shapes(stored), "run make notebook"
    problems = [text for name, text in streams if name == "stderr" and text.strip() and not _is_bar(text)]
    assert not problems
    assert any(_is_bar(text) for name, text in streams if name == "stderr")
    assert not re.search(r"Warning|WARN|Traceback", json.dumps(notebook.cells))
    shown = [output["data"] for cell in notebook.cells for output in cell.get("outputs", []) if "data" in output]
    assert len(shown) >= 5
    assert any("UnindexedFiles" in data["text/plain"] and "committed" in data["text/plain"] for data in shown)


def _is_bar(text):
    """Whether a text is states of a progress bar and nothing else."""
    states = [state for state in re.split(r"[\r\n]+", text) if state.strip()]
    return bool(states) and all(re.match(r"optimize \S+: .*\[.*\]\s*$", state) for state in states)
