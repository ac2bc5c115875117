"""Random conditions, index spaces and rows: no row that meets a condition may lie outside the boxes of its plan.

The truth comes from ``sql_truth``, which shares no code with the planning. As a program, it tries many more conditions
than the tests do, and names the seed of each failure: ``make fuzz ARGS="--seed 7 --count 1"`` repeats it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).resolve().parent)]

from condition_trees import CASTS, Conditions, as_json, draw, draw_focus, draw_type, leaves_of, near
from sql_truth import DAY_MICROS, Fails, Operand, Row, Session, Zone, cast, digits, truth

from catalog.predicates.index_conditions import condition_of_json
from catalog.properties.index_properties import HASH_TYPES_KEY_PREFIX, hash_type
from catalog.pruning.read_planning import plan_read
from otree.errors import IndexFormatError
from otree.revision import Revision, configuration_of
from otree.transformation import (
    EmptyTransformation,
    HashTransformation,
    IdentityTransformation,
    LinearTransformation,
    NumericQuantilesTransformation,
    StringQuantilesTransformation,
    Transformation,
    transformation_from_json,
)
from otree.transformer import Transformer
from otree.weight import MAX_WEIGHT, MIN_WEIGHT

HOUR_MICROS = 3_600_000_000
_FORMAT_TYPES = {
    "tinyint": "Integer", "smallint": "Integer", "int": "Integer", "bigint": "Long", "float": "Float",
    "double": "Double", "decimal": "Decimal", "date": "Date", "timestamp": "Timestamp", "timestamp_ntz": "Timestamp",
    "string": "String", "boolean": "Integer", "binary": "String",
}  # fmt: skip
# What a column may have been widened to since a revision was made.
_WIDENED = {
    "tinyint": ("smallint", "int", "bigint", "double", "decimal(10,2)"),
    "smallint": ("int", "bigint", "double", "decimal(10,2)"),
    "int": ("bigint", "double", "decimal(20,0)"),
    "bigint": ("decimal(20,0)",),
    "float": ("double",),
    "decimal(10,2)": ("decimal(12,2)", "decimal(14,4)"),
    "decimal(14,4)": ("decimal(38,6)",),
    "date": ("timestamp_ntz",),
}
_ONLY_OURS = ("tinyint", "smallint", "boolean", "binary", "timestamp_ntz")
_CONDITIONS_PER_TABLE = 20
_ROWS = 12


@dataclass(frozen=True)
class IndexedColumn:
    """A column of a revision.

    Attributes:
        made: its type when the revision was made.
        today: its type now.
        focus: what its values and those it is compared with are near to.
        space: its transformation.
        null: the coordinate that the writer gave to null.
        shift: milliseconds from UTC to the midnight that the writer took for dates.
    """

    name: str
    made: str
    today: str
    focus: int
    space: Transformation
    null: float
    shift: int

    def coordinate(self, value: Any) -> float:
        """Where a value, of the type as it was, was placed."""
        if value is None:
            return self.null
        if self.made == "date":
            value = value * DAY_MICROS // 1000 + self.shift
        elif self.made.startswith("timestamp"):
            value = value // 1000
        elif self.made == "boolean":
            value = int(value)
        elif self.made.startswith("decimal") and not isinstance(self.space, HashTransformation):
            value = float(value)
        return self.space.coordinate(value)


@dataclass
class Outcome:
    """What a run has seen.

    Attributes:
        count: conditions tried.
        met: rows for which a condition was true.
        left_out: rows outside of all boxes, by the kind of the only leaf; of larger conditions under "".
        narrowed: conditions that left out at least one of their rows.
        failures: texts of what went wrong.
    """

    count: int = 0
    met: int = 0
    narrowed: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


def run(seed: int, count: int) -> Outcome:
    """Tries conditions.

    Args:
        seed: of the first table; each following one has the next.
        count: conditions; a table has twenty of them.
    """
    outcome = Outcome()
    while outcome.count < count:
        _try_table(seed, outcome)
        seed += 1
    return outcome


def _try_table(seed: int, outcome: Outcome) -> None:
    random = Random(seed)
    is_foreign = random.random() < 0.3
    indexed = [_column(f"c{i}", random, is_foreign) for i in range(random.randint(1, 4))]
    other = draw_type(random)
    made = {**{c.name: c.made for c in indexed}, "other": other}
    today = {**{c.name: c.today for c in indexed}, "other": other}
    focus = {**{c.name: c.focus for c in indexed}, "other": draw_focus(other, random)}
    drawn = {name: (today[name], focus[name]) for name in today}
    names = tuple(c.name for c in indexed)
    revision = Revision(
        3,
        0,
        "/t",
        100,
        tuple(_transformer(c) for c in indexed),
        tuple(transformation_from_json(c.space.to_json()) for c in indexed),
    )
    properties = configuration_of([Revision(0, 0, "/t", 100, revision.transformers, ()), revision])
    if not is_foreign:
        properties[f"{HASH_TYPES_KEY_PREFIX}3"] = ";".join(hash_type(c.made) for c in indexed)
    configuration = json.dumps(properties)
    hashes_alike = all(_hash_class(c.made) == _hash_class(c.today) for c in indexed)
    hashes = [names, names, (*names, "other"), names[::-1]]
    for _ in range(_CONDITIONS_PER_TABLE):
        size = random.choice((1, 1, 1, 1, 2, 3, 4, 8))
        conditions = Conditions(drawn, hashes, random)
        condition = conditions.single() if size == 1 and random.random() < 0.8 else conditions.tree(size)
        leaves = list(leaves_of(condition))
        session = Session(random.choice(("ansi", "legacy", "try")), _zone(random))
        answer = plan_read(configuration, condition_of_json(json.dumps(as_json(condition, today))))
        query = None if answer is None else json.loads(answer)["revisions"].get("3")
        boxes = None if query is None else query["boxes"]
        literals = {c: _literals(leaves, c) for c in made}
        weights = [leaf[3] for leaf in leaves if leaf[0] == "compare" and leaf[2].hash_of and leaf[3] is not None]
        left_out = met = 0
        for _ in range(_ROWS):
            values = {c: _value(made[c], today[c], focus[c], literals[c], session, random) for c in made}
            weight = _weight(weights, random)
            point = [c.coordinate(values[c.name]) for c in indexed]
            is_inside = boxes is None or any(_holds(box, point, weight) for box in boxes)
            left_out += not is_inside
            row = Row(
                {c: cast(v, made[c], today[c], Session("ansi")) for c, v in values.items()},
                {h: weight if h == names and hashes_alike else _weight(weights, random) for h in hashes},
                {leaf[1]: random.choice((True, False, None)) for leaf in leaves if leaf[0] == "opaque"},
            )
            try:
                is_met = truth(condition, row, session) is True
            except Fails:
                continue
            met += is_met
            if is_met and not is_inside:
                outcome.failures.append(
                    f"seed {seed}: {condition}\n  {row}, weight {weight}, point {point}\n  columns {indexed}\n"
                    f"  foreign {is_foreign}, {session}\n  boxes {boxes}"
                )
        outcome.count += 1
        outcome.met += met
        outcome.narrowed += left_out > 0
        outcome.left_out[_kind(condition) if size == 1 else ""] += left_out


def _kind(condition: tuple) -> str:
    """Operator and type of a condition with one leaf."""
    leaf = next(iter(leaves_of(condition)), ("opaque",))
    if leaf[0] == "opaque":
        return "none"
    operand = next(part for part in leaf if isinstance(part, Operand))
    return "hash" if operand.hash_of else operand.sql_type if leaf[0] in ("compare", "in") else leaf[0]


def _holds(box: dict[str, Any], point: list[float], weight: int) -> bool:
    return box["first_weight"] <= weight <= box["last_weight"] and all(
        low <= place <= high for low, place, high in zip(box["lower"], point, box["upper"], strict=True)
    )


def _hash_class(sql_type: str) -> Any:
    """Types of one class hash equal values equally."""
    if sql_type.startswith("decimal"):
        precision, scale = digits(sql_type)
        return precision <= 18, scale
    return {"tinyint": "int", "smallint": "int", "date": "int", "timestamp_ntz": "bigint"}.get(sql_type, sql_type)


# ----------------------------------------------------------------------------------------------------------------- rows


def _value(made: str, today: str, focus: int, literals: list[tuple[Any, str]], session: Session, random: Random) -> Any:
    """A value of a column of the type as it was, often near one of the literals that the condition compares it with."""
    if random.random() < 0.15:
        return None
    value = None
    if literals and random.random() < 0.7:
        literal, compared_as = random.choice(literals)
        value = _back(_back(literal, compared_as, today, session), today, made, session)
    value = draw(made, focus, random) if value is None else near(value, made, random)
    # A day that no timestamp reaches cannot be read after its column was widened.
    return value if today == made or made != "date" or abs(value) < 10**8 else 0


def _literals(leaves: list[tuple], column: str) -> list[tuple[Any, str]]:
    """Literals that a column is compared with, and their types."""
    return [
        (literal, operand.compared_as)
        for leaf in leaves
        for operand in leaf
        if isinstance(operand, Operand) and operand.column == column
        for literal in (leaf[2] if leaf[0] == "in" else leaf[3:])
        if literal is not None
    ]


def _back(value: Any, source: str, target: str, session: Session) -> Any:
    if value is None or source == target:
        return value
    if "boolean" in (source, target) or source not in CASTS:
        return None
    if source == "timestamp_ntz" and target == "date":
        return value // DAY_MICROS
    try:
        return cast(value, source, target, Session("legacy", session.zone))
    except (Fails, OverflowError, TypeError, ValueError):
        return None


def _weight(literals: list[int], random: Random) -> int:
    if not literals or random.random() < 0.3:
        return random.randint(MIN_WEIGHT, MAX_WEIGHT)
    return min(max(random.choice(literals) + random.randint(-1, 1), MIN_WEIGHT), MAX_WEIGHT)


def _zone(random: Random) -> Zone:
    hours = [random.choice((0, 0, 1, -5, 5.5, 14, -12, -18, 18)) for _ in range(2)]
    return Zone(*(int(h * HOUR_MICROS) for h in hours), random.randint(-1000, 1000) * DAY_MICROS)


# -------------------------------------------------------------------------------------------------------------- columns


def _column(name: str, random: Random, is_foreign: bool) -> IndexedColumn:
    made = draw_type(random, without=_ONLY_OURS if is_foreign else ())
    focus = draw_focus(made, random)
    today = random.choice(_WIDENED[made]) if made in _WIDENED and random.random() < 0.2 else made
    space = _space(made, focus, random, is_foreign)
    is_recorded = getattr(space, "null_value", 0) is not None
    null = space.coordinate(None) if is_recorded else random.random()
    shift = int(random.uniform(-18, 18) * HOUR_MICROS / 1000) if is_foreign else 0
    return IndexedColumn(name, made, today, focus, space, null, shift)


def _transformer(column: IndexedColumn) -> Transformer:
    space = column.space
    data_type = _FORMAT_TYPES[column.made.partition("(")[0]] + "DataType"
    if isinstance(space, EmptyTransformation):
        return Transformer("quantiles", column.name, data_type)
    if isinstance(space, HashTransformation):
        return Transformer("hashing", column.name, data_type)
    quantiles = isinstance(space, (NumericQuantilesTransformation, StringQuantilesTransformation))
    return Transformer("quantiles" if quantiles else "linear", column.name, data_type)


def _space(made: str, focus: int, random: Random, is_foreign: bool) -> Transformation:
    data_type = _FORMAT_TYPES[made.partition("(")[0]] + "DataType"
    is_text = data_type == "StringDataType"
    kinds = ["hash", "string quantiles", "string quantiles", "empty"] if is_text else [
        "linear", "linear", "linear", "quantiles", "quantiles", "hash", "identity", "legacy",
    ]  # fmt: skip
    while True:
        kind = random.choice(kinds)
        try:
            return _drawn(kind, made, data_type, focus, random, is_foreign)
        except IndexFormatError:
            continue  # a range that is none


def _drawn(kind: str, made: str, data_type: str, focus: int, random: Random, is_foreign: bool) -> Transformation:
    forgets = is_foreign and random.random() < 0.5
    if kind == "hash":
        return HashTransformation(None if forgets else random.randint(-(2**31), 2**31 - 1))
    if kind == "empty":
        return EmptyTransformation()
    if kind == "string quantiles":
        letters = random.choice(("abz7 é", "abz7 é", "aA\ud7ff\ue000\U0010ffff"))
        texts = {"".join(random.choices(letters, k=random.randint(0, 2))) for _ in range(5)}
        if made == "binary":
            texts = {text for text in texts if text.isascii()}
        return StringQuantilesTransformation(tuple(sorted(texts)))
    ends = sorted(_unit(made, focus, random) for _ in range(2))
    if kind == "linear":
        null = None if forgets else random.uniform(*ends) if is_foreign else ends[0]
        whole = data_type in ("IntegerDataType", "LongDataType", "TimestampDataType", "DateDataType")
        return LinearTransformation(*ends, int(null) if whole and null is not None else null, data_type)
    if kind == "quantiles":
        return NumericQuantilesTransformation(tuple(sorted(_unit(made, focus, random) for _ in range(6))), data_type)
    if kind == "identity":
        return IdentityTransformation(None if random.random() < 0.3 else ends[0], data_type)
    return transformation_from_json(
        {"className": "io.qbeast.core.transform.IdentityToZeroTransformation", "identityValue": 7}
    )


def _unit(made: str, focus: int, random: Random) -> int | float:
    """A finite value in the index's unit."""
    while True:
        value = draw(made, focus, random)
        if isinstance(value, Decimal):
            return float(value)
        if not isinstance(value, float) or abs(value) < 1e308:
            return value * 86_400_000 if made == "date" else value // 1000 if made.startswith("timestamp") else value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="of the first table (default 0)")
    parser.add_argument("--count", type=int, default=100_000, help="conditions to try (default 100,000)")
    arguments = parser.parse_args()
    print(f"seeds from {arguments.seed}, {arguments.count:,} conditions", flush=True)
    start = time.monotonic()
    outcome = run(arguments.seed, arguments.count)
    print(
        f"{outcome.count:,} conditions in {time.monotonic() - start:.0f} s: {outcome.met:,} rows met theirs, "
        f"{outcome.narrowed:,} conditions left rows out, {len(outcome.failures)} failures"
    )
    for failure in outcome.failures[:10]:
        print(failure)
    sys.exit(bool(outcome.failures))


if __name__ == "__main__":
    main()
