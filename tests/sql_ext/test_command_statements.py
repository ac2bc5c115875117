"""SQL text as its statements; no Spark."""

import pytest

from sql_ext.commands.statements import statements


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" ;; \n ; ", []),
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1;", ["SELECT 1"]),
        ("SELECT 1; SELECT 2 ;\n", ["SELECT 1", "SELECT 2"]),
        ("SELECT ';' AS a; SELECT \";\"", ["SELECT ';' AS a", 'SELECT ";"']),
        (r"SELECT 'it\'s;' ; SELECT 2", [r"SELECT 'it\'s;'", "SELECT 2"]),
        ("SELECT 'it''s;'; SELECT 2", ["SELECT 'it''s;'", "SELECT 2"]),
        (r"SELECT r'\'; SELECT 2", [r"SELECT r'\'", "SELECT 2"]),
        (r"SELECT char'\';'; SELECT 2", [r"SELECT char'\';'", "SELECT 2"]),
        ("SELECT * FROM `a;b`; SELECT 2", ["SELECT * FROM `a;b`", "SELECT 2"]),
        ("CREATE VIEW v AS $$\na: b; c's\n$$; SELECT 2", ["CREATE VIEW v AS $$\na: b; c's\n$$", "SELECT 2"]),
        ("SELECT $$open; SELECT 2", ["SELECT $$open; SELECT 2"]),
        ("SELECT $Tag$a; $$; $tag$; $b$Tag$; SELECT 2", ["SELECT $Tag$a; $$; $tag$; $b$Tag$", "SELECT 2"]),
        ("SET secret = pa$word$x; SELECT 2", ["SET secret = pa$word$x", "SELECT 2"]),  # no body without an end
        ("SELECT $t1$a; $t1$", ["SELECT $t1$a", "$t1$"]),  # tags are letters
        ("SELECT 1 -- one; two\n; SELECT 2", ["SELECT 1 -- one; two", "SELECT 2"]),
        ("SELECT /* a; /* b; */ c; */ 1; SELECT 2", ["SELECT /* a; /* b; */ c; */ 1", "SELECT 2"]),
        ("-- nothing\n; /* nothing */ ;", []),
        ("-- why\nSELECT 1; -- done", ["-- why\nSELECT 1"]),
        ("SELECT 'open; SELECT 2", ["SELECT 'open; SELECT 2"]),
        ("SELECT 1 /* open; SELECT 2", ["SELECT 1 /* open; SELECT 2"]),
        ("'alone'", ["'alone'"]),
        ("SELECT 1; BEGIN SELECT 2; SELECT 3; END;", ["SELECT 1", "BEGIN SELECT 2; SELECT 3; END;"]),
        ("block: BEGIN SELECT 2; END", ["block: BEGIN SELECT 2; END"]),
        ("SELECT beginning FROM t; SELECT 2", ["SELECT beginning FROM t", "SELECT 2"]),
        ("CALL use.optimize('t'); SELECT * FROM t.revisions", ["CALL use.optimize('t')", "SELECT * FROM t.revisions"]),
    ],
    ids=repr,
)
def test_statements(text, expected):
    assert statements(text) == expected


def test_long_texts_are_quick():
    """A statement of a megabyte with many quotes: one pass."""
    text = "SELECT " + ", ".join(f"'v{n};'" for n in range(100_000)) + "; SELECT 2"
    assert len(statements(text)) == 2
