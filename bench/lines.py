"""The layout and a small optimization on every line of Spark, in one table.

``make bench-lines`` makes the environment of each line first. The lines run one after another on the same machine, each
with its oldest Spark and Delta. Compare the ratios within a line: newer Sparks differ in their own speed, too.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from catalog.jvm.spark_lines import LINES, SparkLine

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent
COLUMNS = (
    "| line | writing | to the limit | sample 1 % | box of 1 % | liquid, box of 1 % | after appends: optimize, s |"
    " liquid, s | box of 1 % | liquid, box of 1 % | small optimize, CPU s | jobs | OPTIMIZE, CPU s | jobs |"
)


def main() -> None:
    """Runs each line and prints a table, and as the last line JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", nargs="*", default=[line.name for line in LINES])
    parser.add_argument("--rows", type=int, default=2_000_000)
    given = parser.parse_args()
    layout = ("--rows", str(given.rows), "--file-bytes", str(8 << 20), "--dimensions", "2", "--appends", "10")
    results = {}
    for line in LINES:
        if line.name in given.lines:
            layouts = bench(line, "layout.py", *layout, "--only", "plain", "limit", "liquid", "use")
            results[line.name] = {
                "layout": {each["layout"]: figures(each) for each in layouts},
                "small_optimize": bench(line, "small_optimize.py"),
            }
            print(line.name, json.dumps(results[line.name]), flush=True)
    print(COLUMNS)
    print("|" + " --- |" * COLUMNS.count(" |"))
    for name, result in results.items():
        print(row(name, result["layout"], result["small_optimize"]))
    print(json.dumps({"command": "make bench-lines", "rows": given.rows, "lines": results}))


def figures(layout: Mapping[str, Any]) -> dict[str, float]:
    """Returns the figures of a layout that the table and ``results/lines.json`` have."""
    found = {"write_s": layout["write_s"]}
    if "fresh" in layout:
        found["fresh_sample_0.01"] = layout["fresh"]["sample 0.01"]
        found["fresh_box_0.01"] = layout["fresh"]["box 0.01"]
        found["optimize_s"] = layout["tidy_s"]
        found["optimized_box_0.01"] = layout["tidied"]["box 0.01"]
    return found


def python_of(line: SparkLine) -> Path:
    """Returns the Python of a line's environment, which the Makefile names."""
    folder = ".venv" if line is LINES[-1] else f".venv-{line.name}-oldest"
    return ROOT / folder / "bin" / "python"


def bench(line: SparkLine, script: str, *arguments: str) -> Any:
    """Runs a benchmark in the environment of a line, and returns the JSON that it prints last."""
    python = python_of(line)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": str(python)}
    command: Sequence[str] = (str(python), str(BENCH / script), *arguments)
    done = subprocess.run(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"{script} failed on Spark {line.name}:\n{done.stdout[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def row(name: str, layouts: Mapping[str, Mapping[str, float]], small: Mapping[str, Mapping[str, float]]) -> str:
    """Returns a line of the table."""
    use, liquid = layouts["use"], layouts["liquid"]
    cells = (
        name,
        f"{use['write_s'] / layouts['plain']['write_s']:.2f}",
        f"{use['write_s'] / layouts['limit']['write_s']:.2f}",
        use["fresh_sample_0.01"],
        *(layout["fresh_box_0.01"] for layout in (use, liquid)),
        *(layout["optimize_s"] for layout in (use, liquid)),
        *(layout["optimized_box_0.01"] for layout in (use, liquid)),
        *(small[way][key] for way in ("use", "optimize") for key in ("cpu", "jobs")),
    )
    return "| " + " | ".join(map(str, cells)) + " |"


if __name__ == "__main__":
    main()
