"""Texts that a state file may hold after a crash, an editor, another version or another clock."""

import json

from hypothesis import strategies as st

# Values of the wrong type, and those of the right one that nothing can be done with.
ODD_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(10**30), 10**30),
    st.sampled_from([0, -1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 10**400, 253_370_764_800_000]),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(["", "\ud800", "\x00", "a\nb", "x" * 10_000, "12", "NaN", "１２", "../../x"]),
    st.lists(st.one_of(st.none(), st.integers(), st.text(max_size=5)), max_size=4),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=3),
    st.sampled_from([["x"] * 1000, {"a": {"b": {"c": []}}}]),
)
_ANY_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=10)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=5), inner, max_size=4)),
    max_leaves=10,
)
_FIXED = st.sampled_from(
    [
        "",
        " ",
        "\n",
        "null",
        "[]",
        "{}",
        '""',
        "7",
        "NaN",
        "-Infinity",
        "1e999",
        "1" * 5000,
        "\ufeff{}",
        "[" * 100_000,
        '{"a":' * 100_000,
        '{"expires_at":' + "[" * 5000 + "]" * 5000 + "}",
        "{}{}",
        "{'run_id': 1}",
    ]
)


def broken_texts(sound: dict) -> st.SearchStrategy[str]:
    """Texts of every kind, among them the sound one changed a little.

    Args:
        sound: a value that is accepted.
    """
    text = json.dumps(sound)
    some = st.sets(st.sampled_from(sorted(sound))).map(lambda kept: {key: sound[key] for key in kept})
    changed = st.dictionaries(st.sampled_from(sorted(sound)), ODD_VALUES, min_size=1).map(lambda odd: {**sound, **odd})
    return st.one_of(
        st.binary(max_size=50).map(lambda found: found.decode("utf-8", "replace")),
        st.text(max_size=50),
        _ANY_JSON.map(json.dumps),
        _FIXED,
        changed.map(json.dumps),
        # Left out, added, twice, cut off, and followed by something else.
        some.map(json.dumps),
        ODD_VALUES.map(lambda odd: json.dumps({**sound, "unknown": odd})),
        st.tuples(st.sampled_from(sorted(sound)), ODD_VALUES).map(
            lambda pair: text[:-1] + f", {json.dumps(pair[0])}: {json.dumps(pair[1])}}}"
        ),
        st.integers(0, len(text)).map(lambda end: text[:end]),
        st.text(min_size=1, max_size=5).map(lambda more: text + more),
    )
