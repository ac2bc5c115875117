"""Only ``catalog/jvm`` works with objects and names of the JVM. No Spark."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
ROOMS = ("otree", "catalog", "procedures", "sql_ext")
BORDER = ROOT / "catalog" / "jvm"
# Where this process itself is set up, or a setting of Spark is the name of a class.
EXEMPT = {
    "sql_ext/callback_server.py": "replaces the callback server of Py4J",
    "sql_ext/driver_process.py": "waits for the process of the JVM",
    "sql_ext/configuration.py": "settings of Spark that name classes",
    "sql_ext/delta_jars.py": "coordinates of packages",
    "sql_ext/server/connect.py": "starts Spark Connect",
    "sql_ext/server/jdbc.py": "starts the Thrift server",
    "sql_ext/server/serving.py": "sets up the log of the server",
}
ATTRIBUTES = {
    "_jdf", "_jc", "_jvm", "_jsc", "_jsparkSession", "_gateway", "java_exception", "HashMap", "ArrayList",
}  # fmt: skip
PACKAGES = (
    "io.usespark", "io.delta", "org.apache.", "org.sparkproject", "java.lang", "java.util", "java.time", "scala.",
)  # fmt: skip
MODULES = ("catalog.jvm.java_values", "py4j")
# The classes of Py4J's and PySpark's exceptions are Python's.
ALLOWED_MODULES = ("py4j.protocol",)


def _violations(source):
    """Line and text of each use of the JVM in a module."""
    tree = ast.parse(source)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None
    }
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=name) if name in ATTRIBUTES:
                yield node.lineno, name
            case ast.Constant(value=str(text)) if id(node) not in docstrings and (
                text in ATTRIBUTES or text == "_origin" or text.startswith(PACKAGES)
            ):
                yield node.lineno, text
            case ast.ImportFrom(module=str(module)) if _is_banned(module):
                yield node.lineno, module
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names if _is_banned(alias.name))


def _is_banned(module):
    return module.startswith(MODULES) and not module.startswith(ALLOWED_MODULES)


def _modules():
    return [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py")) if not path.is_relative_to(BORDER)]


def test_other_modules_leave_the_jvm_to_catalog_jvm():
    found = {}
    for path in _modules():
        name = str(path.relative_to(ROOT))
        uses = list(_violations(path.read_text(encoding="utf-8")))
        if uses:
            found[name] = uses
    assert {name: uses for name, uses in found.items() if name not in EXEMPT} == {}
    # An exemption that nobody needs any more has to go.
    assert set(found) == set(EXEMPT)


@pytest.mark.parametrize(
    "source",
    [
        "rows._jdf",
        "spark._jvm.java.lang.System",
        'getattr(spark, "_jsparkSession")',
        "java.util.HashMap()",
        'x = "io.usespark.Bridge"',
        "from catalog.jvm.java_values import jvm",
        "from py4j.java_gateway import JavaObject",
        "import py4j.java_gateway",
        "error.java_exception",
        'getattr(error, "_origin", None)',
    ],
)
def test_the_rule_finds(source):
    assert list(_violations(source))


@pytest.mark.parametrize(
    "source",
    [
        '"""The shim\'s ``io.usespark.Bridge``."""',
        "from py4j.protocol import Py4JJavaError",
        "from catalog.jvm.session import described_jobs",
        'x = "java"',
    ],
)
def test_the_rule_allows(source):
    assert not list(_violations(source))
