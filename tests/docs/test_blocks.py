"""Every block of SQL and Python in README and docs runs, page by page, and prints what the page says it prints."""

import contextlib
import doctest
import io
from dataclasses import dataclass, field

import pytest
from pages import Block, blocks, pages, statements
from pyspark.errors import PySparkException

import sql_ext
from procedures.process.application import application

# Whatever a block holds, it says what it is: code that nobody runs is not mistaken for code.
LANGUAGES = {"sql", "python", "sh", "text", "java", "ini", "json", "yaml", "jinja"}
LINE = 88  # what a column of the site shows without scrolling
# `make examples` runs the README.
QUICK = {"docs/security.md"}
_COMPARE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.fixture
def page_session(spark, tmp_path, monkeypatch):
    """The session with nothing in its catalog; what a page registers or creates is gone afterwards."""
    procedures, strategies = dict(application().own_procedures), dict(application().own_strategies)
    monkeypatch.chdir(tmp_path)
    confs = {key: value for key, value in spark.conf.getAll.items() if key.startswith("spark.")}
    tables = _names(spark, "SHOW TABLES IN spark_catalog.default")
    yield spark
    spark.sql("USE spark_catalog.default")
    views = _names(spark, "SHOW VIEWS IN spark_catalog.default")
    for name in _names(spark, "SHOW TABLES IN spark_catalog.default") - tables:
        spark.sql(f"DROP {'VIEW' if name in views else 'TABLE'} spark_catalog.default.`{name}`")
    for row in spark.sql("SHOW DATABASES IN spark_catalog").where("namespace != 'default'").collect():
        spark.sql(f"DROP DATABASE spark_catalog.`{row.namespace}` CASCADE")
    for key in set(spark.conf.getAll) - set(confs):
        spark.conf.unset(key)
    application().own_procedures.clear()
    application().own_procedures.update(procedures)
    application().own_strategies.clear()
    application().own_strategies.update(strategies)


def _names(spark, show):
    return {row[1] for row in spark.sql(show).where("NOT isTemporary").collect()}


@dataclass
class Page:
    """Runs the blocks of a page, one after another.

    Attributes:
        spark: an attached session.
        names: what the blocks have defined.
        printed: what the last block printed, or the rows of its last statement.
    """

    spark: object
    names: dict = field(default_factory=dict)
    printed: str = ""

    def __post_init__(self):
        self.names |= {"spark": self.spark, "sql_ext": sql_ext, "__name__": "__main__"}

    def run(self, block: Block):
        if block.is_output:
            assert doctest.OutputChecker().check_output(block.code, self.printed, _COMPARE), (
                f"{block.place}: the page shows\n{block.code}\nand this is printed\n{self.printed}"
            )
        elif block.runs and block.error:
            with pytest.raises((sql_ext.UseError, PySparkException)) as raised:
                self._do(block)
            assert _code(raised.value) == block.error, f"{block.place}: {raised.value}"
        elif block.runs:
            self._do(block)

    def _do(self, block: Block):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            if block.language == "python":
                # Spaces in front of the code keep its lines where the page has them, for tracebacks.
                code = compile("\n" * (block.line - 1) + block.code, block.page, "exec")
                exec(code, self.names)
            else:
                for statement in statements(block.code):
                    rows = self.spark.sql(statement)
                    rows.collect()
                    out = io.StringIO(rows._show_string(100, 60) if rows.columns else "")
        self.printed = out.getvalue()


def _code(error: Exception) -> str | None:
    return error.code if isinstance(error, sql_ext.UseError) else error.getCondition()


@contextlib.contextmanager
def _named(block):
    try:
        yield
    except Exception as error:
        raise AssertionError(f"The block at {block.place} failed.") from error


def _cases():
    ran = [page for page in pages() if any(block.runs for block in blocks(page))]
    return [pytest.param(page, marks=[] if page in QUICK else [pytest.mark.slow]) for page in ran]


@pytest.mark.parametrize("page", _cases())
def test_page(page, page_session):
    running = Page(page_session)
    for block in blocks(page):
        with _named(block):
            running.run(block)


@pytest.mark.parametrize("page", pages())
def test_every_block_says_what_it_is(page):
    for block in blocks(page):
        assert block.language in LANGUAGES or block.language.startswith("{"), f"{block.place}: '{block.language}'"
        assert not block.error or block.runs, f"{block.place}: an error of what nobody runs"


@pytest.mark.parametrize("page", pages())
def test_lines_of_blocks_fit_their_column(page):
    shown = [block for block in blocks(page) if block.info != "setup"]
    long = [
        f"{page}:{block.line + number}"
        for block in shown
        for number, line in enumerate(block.code.splitlines())
        if len(line) > LINE
    ]
    assert not long


def test_statements_end_at_their_semicolons():
    assert statements("SELECT ';' AS `a;b`; -- no; end\n/* nor; here */ SELECT 2;\n-- nothing more") == [
        "SELECT ';' AS `a;b`",
        "-- no; end\n/* nor; here */ SELECT 2",
    ]
