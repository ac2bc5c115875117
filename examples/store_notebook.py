"""Runs the notebooks of this folder and stores them with their outputs: ``make notebook``.

A code host then shows what the cells print. Progress bars and the metadata of the run are left out.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = sorted(Path(__file__).resolve().parent.glob("*.ipynb"))
LIMIT_SECONDS = 900


def run(notebook: nbformat.NotebookNode, folder: str) -> None:
    """Runs all cells in a folder, and keeps the outputs that a reader wants to see.

    Args:
        notebook: is changed.
        folder: the working directory of the kernel.

    Raises:
        CellExecutionError: a cell fails.
    """
    NotebookClient(notebook, timeout=LIMIT_SECONDS, resources={"metadata": {"path": folder}}).execute()
    for number, cell in enumerate((cell for cell in notebook.cells if cell.cell_type == "code"), 1):
        cell.metadata.pop("execution", None)
        cell.execution_count = number
        cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = number
    # The version of the interpreter that ran it does not matter for the notebook.
    notebook.metadata.get("language_info", {}).pop("version", None)


def main() -> None:
    """Runs and rewrites the notebooks."""
    for path in NOTEBOOKS:
        notebook = nbformat.read(path, as_version=4)
        with tempfile.TemporaryDirectory() as folder:
            run(notebook, folder)
        nbformat.write(notebook, path)
        print(f"stored {path}", file=sys.stderr)


if __name__ == "__main__":
    main()
