"""Random SQL conditions over nullable columns with special values, from a seed; nothing of planning is used."""

from dataclasses import dataclass
from random import Random

# What can be compared with each other when ANSI is off.
_NUMBERS = ("TINYINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(12,3)", "STRING")


@dataclass(frozen=True)
class Column:
    """A column of the generator.

    Attributes:
        sql_type: its SQL type.
        value: SQL of a value from ``{v}``, a whole number from 0 to 999.
        specials: SQL of values that are rare in the table and frequent in conditions.
        others: literals of other types that it is compared with.
        casts: types that it is cast to.
    """

    sql_type: str
    value: str
    specials: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    casts: tuple[str, ...] = ()

    def literal(self, random: Random, mixed: bool = True) -> str:
        """A value as SQL, at times null or special; of another type, too, where ``mixed``."""
        if random.random() < 0.06:
            return random.choice(["NULL", f"CAST(NULL AS {self.sql_type})"])
        if mixed and self.others and random.random() < 0.12:
            return random.choice(self.others)
        if self.specials and random.random() < 0.25:
            return random.choice(self.specials)
        return self.value.format(v=random.randrange(1000))


_FLOAT_ENDS = ("float('NaN')", "float('Infinity')", "float('-Infinity')", "float('-0.0')", "float(0)")
_DOUBLE_ENDS = tuple(text.replace("float", "double") for text in _FLOAT_ENDS)
# Around 2^24 a FLOAT stands for several whole numbers.
_MANY_IN_ONE = ("16777215", "16777216", "16777217", "16777218", "-16777217")
_OF_NUMBERS = ("float(16777216)", "double('16777216.5')", "1.5", "-3.25D", "'17'", "'x'", "9007199254740993", "0.1F")

COLUMNS = {
    "b": Column("BOOLEAN", "({v} % 2 = 0)", (), ("'true'", "1"), ("INT", "STRING")),
    "c": Column("BOOLEAN", "({v} % 5 = 0)", (), ("'false'", "0"), ("INT", "STRING")),
    "i": Column("INT", "({v} - 500)", _MANY_IN_ONE, _OF_NUMBERS, _NUMBERS),
    "j": Column("INT", "({v} * 7 - 3000)", (), _OF_NUMBERS, (*_NUMBERS, "BOOLEAN")),
    "f": Column("FLOAT", "float(({v} - 500) / 4)", _FLOAT_ENDS, (*_OF_NUMBERS, *_DOUBLE_ENDS), _NUMBERS),
    "d": Column("DOUBLE", "(({v} - 500) / 7D)", _DOUBLE_ENDS, (*_OF_NUMBERS, *_FLOAT_ENDS), _NUMBERS),
    "s": Column(
        "STRING", "concat('s', {v} % 200)", ("''", "'é\U0001f600'", "'s1 '", "'17'"), ("17", "1.5D"), ("INT", "DOUBLE")
    ),
    "t": Column(
        "TIMESTAMP", "timestamp_micros(1600000000000000 + {v} * 86400001007L)",
        ("TIMESTAMP'1969-12-31 23:59:59.999999'",),
        ("DATE'2021-02-03'", "'2020-12-07 03:00:00'", "TIMESTAMP_NTZ'2022-01-01 00:00:00'"),
        ("DATE", "STRING", "DOUBLE"),
    ),
    "n": Column(
        "DECIMAL(10,2)", "CAST(({v} - 500) / 8D AS DECIMAL(10,2))", ("0BD", "12345678.25BD"), _OF_NUMBERS, _NUMBERS
    ),
}  # fmt: skip

_COMPARISONS = ("=", "<=>", "<", "<=", ">", ">=", "<>")
_TRUTHS = ("IS TRUE", "IS NOT TRUE", "IS FALSE", "IS NOT FALSE", "IS UNKNOWN", "IS NOT UNKNOWN")


def rows(random: Random, start: int, count: int) -> str:
    """A query of random rows: ``id``, a partition ``p``, and the columns with a tenth of nulls."""
    values = []
    for name, column in COLUMNS.items():
        draw = f"pmod(xxhash64(id, '{name}', {random.randrange(1000)}), 1000)"
        cases = "".join(f" WHEN {i} THEN {special}" for i, special in enumerate(column.specials, 1))
        seldom = f"pmod(xxhash64(id, '{name}', 'special'), 60)"
        null = f"pmod(xxhash64(id, '{name}', 'null'), 10) = 0"
        value = f"CASE {seldom}{cases} ELSE {column.value.format(v=draw)} END" if cases else column.value.format(v=draw)
        values.append(f"CAST(IF({null}, NULL, {value}) AS {column.sql_type}) {name}")
    return f"SELECT id, CAST(id % 2 AS INT) p, {', '.join(values)} FROM range({start}, {start + count}, 1, 1)"


def condition(random: Random) -> str:
    """A condition: true, false or null for each row. Half of them are about one column, so that they skip files."""
    kind = random.random()
    if kind < 0.3:
        return leaf(random)
    if kind < 0.5:
        return _wrapped(leaf(random), random)
    return _tree(random, 2)


def _tree(random: Random, depth: int) -> str:
    if not depth or random.random() < 0.25:
        return leaf(random)
    if random.random() < 0.25:
        return _wrapped(_tree(random, depth - 1), random)
    parts = [_tree(random, depth - 1) for _ in range(random.choice([2, 2, 3]))]
    return "(" + random.choice([" AND ", " AND ", " OR "]).join(parts) + ")"


def _wrapped(inner: str, random: Random) -> str:
    shapes = [
        f"NOT ({inner})",
        f"NOT ({inner})",
        f"(({inner}) {random.choice(_TRUTHS)})",
        f"(({inner}) {random.choice(_TRUTHS)})",
        f"coalesce({inner}, {random.choice(['true', 'false'])})",
        f"(({inner}) {random.choice(['=', '<=>', '<>'])} {random.choice(['true', 'false', 'NULL'])})",
        f"IF({leaf(random)}, {inner}, {leaf(random)})",
    ]
    return random.choice(shapes)


def tests_of_truth(random: Random) -> list[str]:
    """Each test of each boolean column for true, false and null, and some comparisons that take null for a value."""
    booleans = [name for name, column in COLUMNS.items() if column.sql_type == "BOOLEAN"]
    found = [f"{name} {truth}" for name in booleans for truth in _TRUTHS]
    for name, column in random.sample(list(COLUMNS.items()), 4):
        value = column.literal(random, mixed=False)
        found += [random.choice([f"NOT ({name} <=> {value})", f"{name} IS DISTINCT FROM {value}"])]
    return found


def leaf(random: Random) -> str:
    """A condition on one column, or on two."""
    name, column = random.choice(list(COLUMNS.items()))
    if column.sql_type == "BOOLEAN" and random.random() < 0.5:
        return random.choice([name, f"NOT {name}", f"({name} {random.choice(_TRUTHS)})"])
    low, high, compared = column.literal(random), column.literal(random, mixed=False), random.choice(_COMPARISONS)
    listed = ", ".join(column.literal(random, mixed=False) for _ in range(random.choice([1, 3, 14])))
    distinct = random.choice(["IS DISTINCT FROM", "IS NOT DISTINCT FROM"])
    shapes = [
        f"{name} {compared} {low}",
        f"{name} {compared} {low}",
        f"{name} {compared} {low}",
        f"{low} {compared} {name}",
        f"{name} {distinct} {low}",
        f"{name} {random.choice(['', 'NOT '])}BETWEEN {low} AND {high}",
        f"{name} {random.choice(['', 'NOT '])}IN ({listed})",
        f"{name} IS {random.choice(['', 'NOT '])}NULL",
        f"CAST({name} AS {random.choice(column.casts)}) {compared} {low}",
        f"CAST({name} AS {random.choice(column.casts)}) {distinct} {low}",
        f"nullif({name}, {low}) {compared} {high}",
        f"hash({name}) % 3 = 1",
    ]
    if column.sql_type == "STRING":
        digit = random.randrange(20)
        shapes += [f"{name} LIKE 's{digit}%'", f"{name} NOT LIKE 's{digit}%'", f"startswith({name}, 's{digit}')"]
        shapes += [f"{name} LIKE '%{digit}'", f"upper({name}) < 'S{digit}'", f"trim({name}) = 's1'"]
    if column.sql_type in _NUMBERS and column.sql_type != "STRING":
        other = random.choice([n for n, c in COLUMNS.items() if c.sql_type in _NUMBERS])
        shapes += [
            f"{name} {compared} {other}",
            f"abs({name}) < 20",
            f"-{name} {compared} {low}",
            f"{name} + 1 > {low}",
        ]
    return random.choice(shapes)
