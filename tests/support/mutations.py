"""Mutation testing: applies each small fault of a list to a copy of the project, and shows that a quick test fails."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from shard import Shard

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
LIST = ROOT / "tests" / "mutations" / "mutations.toml"
# What a test run needs, apart from .venv: the shim's jars are ignored by git.
COPIED = ("otree", "catalog", "procedures", "sql_ext", "tests", "docs", "examples", "pyproject.toml", "README.md")
LINKED = ("jars-build", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "bench")
QUICK = "not slow and not clients and not cluster"


@dataclass(frozen=True)
class Mutation:
    """A small fault.

    Attributes:
        name: what goes wrong, in a few words.
        file: path of a Python file, relative to the project.
        before: text that occurs once in it.
        after: what takes its place.
        caught_by: node id of a test of ``make test`` that fails.
    """

    name: str
    file: str
    before: str
    after: str
    caught_by: str

    def apply(self, root: Path) -> None:
        """Changes the file below ``root``.

        Raises:
            ValueError: the text does not occur exactly once.
        """
        path = root / self.file
        text = path.read_text(encoding="utf-8")
        if text.count(self.before) != 1:
            raise ValueError(f"{self.file}: the text of '{self.name}' occurs {text.count(self.before)} times, not once")
        path.write_text(text.replace(self.before, self.after), encoding="utf-8")


def mutations() -> list[Mutation]:
    """All of the list, in its order."""
    return [Mutation(**entry) for entry in tomllib.loads(LIST.read_text(encoding="utf-8"))["mutation"]]


def copy_project(folder: Path) -> Path:
    """Copies what a mutation may change, and links the rest."""
    ignored = shutil.ignore_patterns("__pycache__")
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=ignored)
        else:
            shutil.copy2(source, folder / name)
    for name in LINKED:
        (folder / name).symlink_to(ROOT / name)
    return folder


def failing(root: Path, tests: Sequence[str], stop: bool = True) -> tuple[list[str], str]:
    """Runs quick tests in a copy.

    Args:
        root: of the copy.
        tests: node ids, files or folders.
        stop: whether the first failure ends the run.

    Returns:
        Node ids of the tests that failed, and what pytest printed.
    """
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", QUICK, *tests]
    run = subprocess.run(
        [*command, "-x"] if stop else command,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    printed = run.stdout + run.stderr
    return re.findall(r"^FAILED (\S+)", printed, re.MULTILINE), printed


def check(mutation: Mutation) -> str | None:
    """Returns why a mutation is not caught as the list says; None where it is."""
    with tempfile.TemporaryDirectory(prefix="use-mutation-") as folder:
        root = copy_project(Path(folder))
        mutation.apply(root)
        failed, printed = failing(root, [mutation.caught_by])
        if failed:
            return None
        return f"{mutation.caught_by} passed" if " passed" in printed else printed.strip()[-500:]


def _passes_unchanged(tests: Sequence[str], workers: int) -> bool:
    """Whether the tests pass without a mutation: a test that always fails would seem to catch each."""
    with tempfile.TemporaryDirectory(prefix="use-mutation-") as folder:
        failed, printed = failing(copy_project(Path(folder)), [*tests, "-n", str(workers), "--dist", "loadfile"])
    if not failed and re.search(r"^\d+ passed", printed, re.MULTILINE) and " error" not in printed:
        return True
    print(f"The tests do not pass without a mutation:\n{printed.strip()[-2000:]}")
    return False


def _failing_with(mutation: Mutation, tests: Sequence[str]) -> list[str]:
    """All tests of some files that a mutation fails."""
    with tempfile.TemporaryDirectory(prefix="use-mutation-") as folder:
        root = copy_project(Path(folder))
        mutation.apply(root)
        return failing(root, tests, stop=False)[0]


def main() -> int:
    """Prints one line per mutation; 1 when one is not caught."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="mutations whose name or file contains this text")
    parser.add_argument("--find", metavar="TESTS", help="run these tests instead, and print all that fail")
    parser.add_argument("--shard", type=Shard, default="1/1", help="a part of them, such as 1/3")
    parser.add_argument("--workers", type=int, default=2, help="mutations that are tried at the same time")
    given = parser.parse_args()
    named = [m for m in mutations() if given.only in m.name or given.only in m.file]
    if not named:
        parser.error(f"--only {given.only!r} is part of no name and no file of a mutation")
    chosen = [m for m in named if given.shard.has(m.name)]
    if not given.find and not _passes_unchanged(sorted({m.caught_by for m in chosen}), given.workers):
        return 1

    def outcome(mutation: Mutation) -> tuple[bool, str]:
        if given.find:
            failed = _failing_with(mutation, given.find.split())
            return bool(failed), " ".join(failed) or "nothing failed"
        problem = check(mutation)
        return problem is None, "caught" if problem is None else f"NOT CAUGHT: {problem}"

    missed = 0
    with ThreadPoolExecutor(given.workers) as pool:
        for number, (mutation, (is_caught, text)) in enumerate(zip(chosen, pool.map(outcome, chosen), strict=True), 1):
            missed += not is_caught
            print(f"{number}/{len(chosen)} {mutation.name} ({mutation.file}): {text}", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} mutations were caught.")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
