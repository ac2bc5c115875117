"""What the page needs of the figures of a run."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

ORIGIN = ("spark", "measured", "commit")
"""Which versions a result is of, and its day."""


def summary_of(result: Mapping[str, Any]) -> dict[str, Any]:
    """Returns costs by step, and those of each query by measurement.

    Bytes, requests and jobs are those of the first round of each measurement. By then, the statements before it have
    loaded the logs of their tables. Times are those of the other rounds: if there is no other round, there are no
    times, so that counts can be taken while other programs run.
    """
    steps: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    queries: defaultdict[str, defaultdict[str, list[Mapping[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    sizes: dict[str, Any] = {}
    for record in result["steps"]:
        if record["step"] == "query":
            queries[record["name"]][record["query"]].append(record)
        elif record["step"] == "measure":
            sizes[record["name"]] = record["sizes"]
        else:
            steps[record["step"]].append(record)
    return {
        **{name: result[name] for name in ORIGIN if name in result},
        "log_bytes": result["log_bytes"],
        "sizes": sizes,
        "steps": {name: _sum(each) for name, each in steps.items()},
        "queries": {name: {query: _query(runs) for query, runs in each.items()} for name, each in queries.items()},
    }


def _sum(records: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    listed = list(records)
    return {
        "times": len(listed),
        "seconds": round(sum(each["seconds"] for each in listed), 3),
        "cpu_seconds": round(sum(each["cpu_seconds"] for each in listed), 2),
        "bytes_read": sum(each["counts"].get("data.bytes_read", 0) for each in listed),
        "bytes_written": sum(each["counts"].get("data.bytes_written", 0) for each in listed),
    }


def _query(runs: list[Mapping[str, Any]]) -> dict[str, Any]:
    first, timed = runs[0], runs[1:]
    counts = {
        "ok": all(run["ok"] for run in runs),
        "bytes_read": first["counts"].get("data.bytes_read", 0),
        "log_bytes_read": first["counts"].get("log.bytes_read", 0),
        "requests": sum(count for name, count in first["counts"].items() if not name.endswith(("_read", "_written"))),
        "jobs": first["jobs"],
        "seconds": [round(run["seconds"], 3) for run in timed],
    }
    if not timed:
        return counts
    return counts | {
        "planning": round(statistics.median(run["planning"] for run in timed), 4),
        "cpu_seconds": round(statistics.median(run["cpu_seconds"] for run in timed), 3),
        "task_seconds": round(statistics.median(run["task_seconds"] for run in timed), 3),
    }
