"""Queries, predicates and texts of SQL that Python reads."""

from __future__ import annotations

from random import Random

from catalog.predicates.conditions import AllOf
from catalog.pruning.row_predicate import RowPredicate
from inputs.cases import Reader
from inputs.mutations import any_text, odd_text
from procedures.insight.recommendation.query_parser import parse_query
from sql_ext.commands.statements import statements
from sql_ext.diagnosis.assumed_queries import parsed_queries, with_values
from sql_ext.readers.row_conditions import index_condition, parsed
from sql_ext.readers.table_columns import TableColumns

_TYPES = {
    "a": "integer", "d": "double", "s": "string", "t": "timestamp", "b": "boolean", "k": "long", "f": "float",
    "n": "decimal(10,2)", "y": "date", "x": "binary", "q r": "short",
}  # fmt: skip
COLUMNS = TableColumns(tuple({"name": name, "type": kind, "metadata": {}} for name, kind in _TYPES.items()), ())
_LITERALS = (
    "1", "-1", "1.5", "1e400", "9223372036854775808", "0x1F", "1L", "1BD", "'a'", "'2026-01-01'", "DATE '2026-01-01'",
    "TIMESTAMP '2026-01-01 00:00:00'", "NULL", "true", "CAST('1' AS INT)", "r'\\d'", '"x"', "X'00'", "INTERVAL 1 DAY",
    "'a%'", "now()", ":p", "?", "'it''s'", "'\\u0000'", "(SELECT 1)",
)  # fmt: skip
_FORMS = (
    "{c} = {v}", "{c} <> {v}", "{c} < {v}", "{v} >= {c}", "{c} <=> {v}", "{c} BETWEEN {v} AND {w}", "{c} IN ({v}, {w})",
    "{c} NOT IN ({v})", "{c} IS NULL", "{c} IS NOT NULL", "{c} LIKE {v}", "{c} NOT LIKE {v} ESCAPE '/'", "{c}",
    "NOT {c}", "{c} IS TRUE", "{c} IS DISTINCT FROM {v}", "upper({c}) = {v}", "{c} + 1 > {v}", "{c}.f = {v}",
    "{c} RLIKE {v}",
    "CASE WHEN {c} THEN 1 END = 1", "EXISTS (SELECT 1)", "{c} BETWEEN SYMMETRIC {v} AND {w}", "count({c}) > {v}",
)  # fmt: skip


def _column(chance: Random) -> str:
    return chance.choice([*_TYPES, "t.a", "`q r`", "`a`", "A", "nothing", "a.b.c", "`", "delta.`/t`.a"])


def condition(chance: Random, depth: int = 0) -> str:
    """Returns a condition over the columns, which may be refused."""
    kind = chance.random()
    if depth < 4 and kind < 0.35:
        word = chance.choice((" AND ", " OR ", " and ", "\nOR\n", " XOR ", " && "))
        return word.join(condition(chance, depth + 1) for _ in range(chance.randrange(1, 4)))
    if depth < 4 and kind < 0.5:
        return chance.choice(("({})", "NOT ({})", "NOT {}", "(({}))")).format(condition(chance, depth + 1))
    v, w = chance.choice(_LITERALS), chance.choice(_LITERALS)
    return chance.choice(_FORMS).format(c=_column(chance), v=v, w=w)


def _where(chance: Random) -> str:
    if chance.random() < 0.02:
        size = chance.choice((100, 1_000, 5_000))
        return chance.choice(
            ("(" * size + "a" + ")" * size, "NOT " * size + "b", " AND ".join(["a = 1"] * size), "-" * size + "1")
        )
    text = condition(chance)
    return text if chance.random() < 0.4 else any_text(chance, text)


def _query(chance: Random) -> str:
    head = chance.choice(
        (
            "SELECT * FROM t",
            "SELECT a, s AS z FROM t",
            "SELECT count(*) FROM db.t TABLESAMPLE (1 PERCENT)",
            "SELECT t.a FROM t x",
            "SELECT * FROM t TABLESAMPLE (x PERCENT)",
            "WITH q AS (SELECT 1) SELECT * FROM q",
            "DELETE FROM t",
        )
    )
    text = (
        head
        + (f" WHERE {condition(chance)}" if chance.random() < 0.8 else "")
        + chance.choice(("", " GROUP BY a", " ORDER BY a LIMIT 3", ";", " -- end"))
    )
    return text if chance.random() < 0.5 else any_text(chance, text)


def _file(chance: Random) -> str:
    return chance.choice((";", ";\n", "\n", ";;")).join(_query(chance) for _ in range(chance.randrange(1, 4)))


def _read_query(text: str) -> None:
    parse_query(1, text, lambda name: name in ("t", "db.t"), lambda name: COLUMNS.find(tuple(name.split("."))).name)


def _read_file(text: str) -> None:
    for query in parsed_queries(text, COLUMNS):
        with_values(query, COLUMNS)


def _read_where(text: str) -> None:
    found = parsed(text, COLUMNS.find)
    index_condition(found, COLUMNS)
    assert found is not AllOf


def _read_predicate(text: str) -> None:
    RowPredicate.parse("where", text)


def _script(chance: Random) -> str:
    parts = [
        chance.choice(
            (
                "SELECT 1",
                "-- c",
                "/* a /* b */ */",
                "'x;y'",
                '"',
                "`;`",
                "BEGIN",
                "r'\\'",
                odd_text(chance),
                _query(chance),
            )
        )
        for _ in range(chance.randrange(6))
    ]
    return chance.choice((";", "; ", "\n", "")).join(parts)


def _read_script(text: str) -> None:
    assert all(part.strip() for part in statements(text))


def readers() -> list[Reader]:
    """The readers of queries and conditions."""
    return [
        Reader("queries: recommend", _query, _read_query, share=8),
        Reader("queries: a file of diagnose", _file, _read_file, share=8),
        Reader("queries: where of a reader", _where, _read_where, share=8),
        Reader("queries: where of a procedure", _where, _read_predicate, share=8),
        Reader("queries: statements of a script", _script, _read_script),
    ]
