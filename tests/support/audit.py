"""Audits the dependencies for known vulnerabilities, and writes the bill of materials of the product.

``build/sbom.json`` is a CycloneDX document with the Python packages that an installation with all extras for users has,
the jars of the shim with their digests, and the Maven artifacts that sessions load beside Spark. The audit asks an
index about every installed package, also those of the tools. Without an answer, the command says so and fails.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[0] = str(ROOT)

from catalog.jvm.spark_lines import LINES, delta_coordinates  # noqa: E402
from sql_ext.delta_jars import resolved  # noqa: E402

PRODUCT = "use-spark"
OF_USERS = ("spark", "report", "metrics", "dashboard", "readers")
"""Extras that users install; the others are for the development."""
SBOM = ROOT / "build" / "sbom.json"
VULNERABLE, UNKNOWN = 1, 2
"""Exit codes: a package has a known vulnerability, and the index has not answered."""
_SECONDS = 900


def closure(extras: Iterable[str]) -> set[str]:
    """Returns the names of the installed packages that the product needs with some extras, itself left out.

    Args:
        extras: names of extras.
    """
    found: set[str] = set()
    todo = [(PRODUCT, frozenset(extras))]
    while todo:
        name, wanted = todo.pop()
        for text in importlib.metadata.requires(name) or ():
            needed = Requirement(text)
            if needed.marker is not None and not any(needed.marker.evaluate({"extra": e}) for e in (*wanted, "")):
                continue
            key = canonicalize_name(needed.name)
            if key not in found and key != PRODUCT and _is_installed(key):
                found.add(key)
                todo.append((key, frozenset(needed.extras)))
    return found


def _is_installed(name: str) -> bool:
    try:
        importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def maven_components() -> list[dict[str, Any]]:
    """Returns the artifacts that sessions load beside Spark, on all of its lines."""
    coordinates = {
        each
        for line in LINES
        for delta in line.deltas
        for each in resolved(delta_coordinates(line, delta)) or (delta_coordinates(line, delta),)
    }
    return [_maven_component(*each.split(":")) for each in sorted(coordinates)]


def _maven_component(group: str, name: str, version: str) -> dict[str, Any]:
    purl = f"pkg:maven/{group}/{name}@{version}"
    # A session has those of one line.
    return {
        "type": "library", "bom-ref": purl, "group": group, "name": name, "version": version, "purl": purl,
        "scope": "optional",
    }  # fmt: skip


def jar_components(folder: Path) -> list[dict[str, Any]]:
    """Returns the jars of the shim, with their digests.

    Args:
        folder: where they are.
    """
    version = importlib.metadata.version(PRODUCT)
    return [
        {
            "type": "library",
            "bom-ref": jar.name,
            "name": jar.stem,
            "version": version,
            "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(jar.read_bytes()).hexdigest()}],
        }
        for jar in sorted(folder.glob("use-shim-*.jar"))
    ]


def bill_of_materials(of_environment: dict[str, Any], extras: Iterable[str] = OF_USERS) -> dict[str, Any]:
    """Returns the document of the product.

    Args:
        of_environment: CycloneDX document of all installed packages.
        extras: extras whose packages are a part of it.
    """
    wanted = closure(extras)
    python = [c for c in of_environment["components"] if canonicalize_name(c["name"]) in wanted]
    added = [*jar_components(ROOT / "sql_ext" / "jars"), *maven_components()]
    main = of_environment["metadata"]["component"]["bom-ref"]
    kept = {c["bom-ref"] for c in python} | {main}
    dependencies = [
        {**each, "dependsOn": [ref for ref in each.get("dependsOn", ()) if ref in kept]}
        for each in of_environment.get("dependencies", ())
        if each["ref"] in kept
    ]
    for each in dependencies:
        if each["ref"] == main:
            each["dependsOn"] += [c["bom-ref"] for c in added]
    return {**of_environment, "components": [*python, *added], "dependencies": dependencies}


def write_sbom() -> int:
    """Writes the document, checks it against the schema of CycloneDX, and returns the number of its components."""
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    command = [sys.executable, "-m", "cyclonedx_py", "environment", "--pyproject", str(ROOT / "pyproject.toml"),
               "--mc-type", "library", "--spec-version", "1.6", "--output-reproducible"]  # fmt: skip
    made = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    document = bill_of_materials(json.loads(made.stdout))
    text = json.dumps(document, indent=2) + "\n"
    problem = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if problem is not None:
        raise ValueError(f"the document does not follow the schema of CycloneDX: {problem}")
    SBOM.parent.mkdir(exist_ok=True)
    SBOM.write_text(text, encoding="utf-8")
    return len(document["components"])


# ---------------------------------------------------------------------------------------------------------------- audit


def installed() -> Iterator[str]:
    """Yields the installed packages with their versions, as a file of requirements has them."""
    for found in importlib.metadata.distributions():
        name = canonicalize_name(found.metadata["Name"])
        if name != PRODUCT:
            yield f"{name}=={found.version}"


def verdict(answer: dict[str, Any]) -> tuple[int, list[str]]:
    """Returns the exit code and the lines for people.

    Args:
        answer: what pip-audit has found, as JSON.
    """
    packages = answer.get("dependencies", [])
    unknown = [each for each in packages if "skip_reason" in each]
    lines = [
        f"{each['name']} {each['version']}: {problem['id']}, fixed in {', '.join(problem['fix_versions']) or 'none'}"
        for each in packages
        for problem in each.get("vulns", ())
    ]
    asked = len(packages) - len(unknown)
    if lines:
        return VULNERABLE, [*lines, f"{len(lines)} known vulnerabilities in {asked} packages"]
    if unknown or not packages:
        text = (
            f"No audit: the index does not tell about {len(unknown)} of {len(packages)} packages. Run it where "
            "pip's index answers questions about vulnerabilities, or name one: ARGS='--vulnerability-service osv'."
        )
        return UNKNOWN, [text]
    return 0, [f"no known vulnerability in {asked} packages"]


def audit(arguments: list[str]) -> int:
    """Asks the index, prints the answer, and returns the exit code.

    Args:
        arguments: further options of pip-audit.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as requirements:
        requirements.write("\n".join(sorted(set(installed()))))
        requirements.flush()
        command = [sys.executable, "-m", "pip_audit", "--requirement", requirements.name, "--no-deps", "--disable-pip",
                   "--format", "json", "--progress-spinner", "off", *arguments]  # fmt: skip
        try:
            asked = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_SECONDS)
            code, lines = verdict(json.loads(asked.stdout))
        except subprocess.TimeoutExpired:
            code, lines = UNKNOWN, [f"No audit: the index has not answered within {_SECONDS} s."]
        except ValueError:
            last = (asked.stderr.strip().splitlines() or ["pip-audit gives no reason"])[-1]
            code, lines = UNKNOWN, [f"No audit: {last}"]
    print("\n".join(lines))
    return code


def main() -> int:
    """Returns 0 if all packages were asked about and none has a known vulnerability."""
    count = write_sbom()
    print(f"{SBOM.relative_to(ROOT)}: {count} components", flush=True)
    return audit(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
