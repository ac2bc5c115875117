"""What the pages say of names, types and defaults is what the code declares."""

import json
import re
import sys

import pytest
from markdown_it import MarkdownIt
from pages import ROOT, pages

from catalog import errors
from catalog.properties import optimization_properties
from catalog.properties.names import PROPERTIES
from catalog.properties.option_properties import property_key
from catalog.settings.session_settings import SESSION_SETTINGS
from catalog.settings.strategy_options import (
    BATCH_BYTES,
    DEFAULT_BYTES_PER_ITER,
    DEFAULT_FILE_BYTES,
    ISOLATE_BYTES,
    MAX_FILE_BYTES,
)
from catalog.system_tables import SYSTEM_TABLES
from catalog.virtual_tables import VIRTUAL_TABLES
from procedures.calls.registry import procedures
from procedures.selection import strategies
from procedures.service.service_settings import SERVICE_SETTINGS, ServiceSettings

sys.path.insert(0, str(ROOT / "docs"))
import reference_pages  # from the folder that was just added

CONTRACTS = ROOT / "tests" / "contracts"
# Written by USE, and listed in a sentence of docs/sql.md.
NOT_SET_BY_HAND = {"qbeast.lastRevisionID", "use.index.columnsAsIndexed", "use.index.autoColumns"}


def _tables(page):
    """The tables of a page as (headings above, cells of the first line, cells of the others)."""
    tokens = MarkdownIt().enable("table").parse((ROOT / page).read_text(encoding="utf-8"))
    headings, found, cells = {}, [], None
    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        if token.type == "heading_open":
            level = int(token.tag[1])
            headings = {k: v for k, v in headings.items() if k < level} | {level: after.content}
        elif token.type == "table_open":
            cells = []
        elif token.type == "tr_open":
            cells.append([])
        elif token.type in ("th_open", "td_open"):
            cells[-1].append(after.content.replace("&lt;", "<").replace("&gt;", ">"))
        elif token.type == "table_close":
            found.append((tuple(headings.values()), cells[0], cells[1:]))
    return found


def _names(cell):
    return re.findall(r"`([^`]+)`", cell)


def _below(page, heading, first):
    return [rows for headings, header, rows in _tables(page) if heading in headings and header[0] == first]


@pytest.mark.parametrize("name", procedures())
def test_parameters_in_the_guide_are_those_declared(name):
    declared = procedures()[name].parameters
    page = "docs/automatic.md" if name in ("cancel", "status") else "docs/sql.md"
    tables = _below(page, f"use.{name}", "parameter")
    if not tables:
        text = (ROOT / "docs/automatic.md").read_text() + (ROOT / "docs/sql.md").read_text()
        assert len(declared) <= 1, f"docs/sql.md has no table of the parameters of use.{name}"
        assert re.search(rf"`?CALL\s+use\.{name}\b|## use\.{name}\b", text)
        return
    said = [[_names(row[0])[0], row[1], row[2]] for row in tables[0]]
    assert said == [[p.name, p.type, "required" if p.required else p.default_text] for p in declared]


@pytest.mark.parametrize("name", procedures())
def test_result_columns_in_the_guide_are_those_declared(name):
    declared = reference_pages.columns_of(procedures()[name].result)
    tables = _below("docs/sql.md", f"use.{name}", "result column")
    if name == "status":
        tables = _below("docs/automatic.md", "use.status", "column")
    if tables:
        assert _columns(tables[0]) == declared


@pytest.mark.parametrize(("heading", "table"), [*VIRTUAL_TABLES.items(), *SYSTEM_TABLES.items()])
def test_columns_of_virtual_tables_in_the_guide_are_those_declared(heading, table):
    part = "System tables" if table in SYSTEM_TABLES.values() else "Virtual tables"
    tables = [
        rows
        for headings, header, rows in _tables("docs/sql.md")
        if headings[-2:] == (part, heading) and header[0] == "column"
    ]
    declared = reference_pages.columns_of(table.schema)
    if tables:
        said = _columns(tables[0])
        assert [name for name, _ in said] == [name for name, _ in declared]
        simple = {name: data_type for name, data_type in declared if "<" not in data_type}
        assert {name: kind for name, kind in said if name in simple} == simple
    else:
        section = (ROOT / "docs/sql.md").read_text().split(f"## {part}")[1].split(f"### {heading}")[1].split("\n#")[0]
        # Those that repeat the columns of a virtual table.
        assert heading in VIRTUAL_TABLES or all(
            f"`{name}` {kind}" in section.replace("\n", " ") for name, kind in declared
        )


def _columns(rows):
    """Lines such as ``a``, ``b`` | BIGINT, DOUBLE as pairs of name and type."""
    pairs = []
    for row in rows:
        names, types = _names(row[0]), re.split(r", (?![^<]*>)", row[1])
        pairs += zip(names, types if len(types) == len(names) else types * len(names), strict=True)
    return pairs


def _sql(default):
    if isinstance(default, bool):
        return str(default).lower()
    return "NULL" if default is None else str(default)


def test_options_of_strategies_in_the_guide_are_those_declared():
    (rows,) = _below("docs/sql.md", "use.optimize", "strategy")
    said, strategy = {}, ""
    for row in rows:
        strategy = (_names(row[0]) or [strategy])[0]
        said.setdefault(strategy, [])
        if _names(row[1]):
            said[strategy].append([_names(row[1])[0], row[2], row[3]])
    declared = {
        name: [[o.name, o.type, "required" if o.required else _sql(o.default)] for o in found.options]
        for name, found in strategies().items()
        if found.options or name in said
    }
    assert said == declared


def test_errors_in_the_guide_are_those_of_the_code():
    (rows,) = _below("docs/sql.md", "Errors", "code")
    said = {_names(row[0])[0]: row[1] for row in rows}
    contract = json.loads((CONTRACTS / "errors.json").read_text())
    assert set(contract["codes"]) <= set(said)
    for code, state in (line.split() for line in contract["classes"].values()):
        assert said[code] == state
    for kind in ("column", "procedure", "file"):
        error = errors.UnknownNameError.of(kind, "", ())
        assert said[error.code] == error.sql_state


def test_properties_and_settings_in_the_guides_are_those_of_the_code():
    contract = json.loads((CONTRACTS / "names.json").read_text())
    older, newer = "use.optimization.", "use.optimization.autoOptimize."
    said = {_names(row[0])[0] for row in _below("docs/sql.md", "Table properties", "property")[0]}
    newer_rows, older_rows = _below("docs/automatic.md", "Properties", "key")[:2]
    said |= {newer + _names(row[0])[0] for row in newer_rows} | {older + _names(row[0])[0] for row in older_rows}
    said |= {_names(row[0])[0] for row in _below("docs/automatic.md", "Triggers", "key")[0]}
    # Of the format, and written by hand nowhere.
    assert said | NOT_SET_BY_HAND >= set(contract["properties"])
    assert said <= set(contract["properties"]) | {"use.index.onWrite"} | set(optimization_properties.NEWER_FAMILY)
    confs = [row for page in pages() for _, header, rows in _tables(page) if header[0] == "conf" for row in rows]
    assert {_names(row[0])[0] for row in confs} == set(contract["settings"])


def test_defaults_of_the_service_in_the_guide_are_those_of_the_code():
    (rows,) = _below("docs/automatic.md", "Settings", "conf")
    said = {_names(row[0])[0]: _names(row[1])[0] for row in rows if _names(row[1])}
    assert ServiceSettings.of(said.get) == ServiceSettings.of(lambda key, default: default)


@pytest.mark.parametrize("topic", reference_pages.TOPICS)
def test_reference_pages_hold_what_is_declared(topic):
    text = reference_pages.TOPICS[topic]()
    expected = {
        "procedures": [f"## use.{name}\n" for name in procedures()],
        "strategies": [o.name for s in strategies().values() for o in s.options] + list(strategies()),
        "virtual-tables": [f"`{c}`" for t in VIRTUAL_TABLES.values() for c, _ in reference_pages.columns_of(t.schema)],
        "properties": json.loads((CONTRACTS / "names.json").read_text())["properties"],
        "settings": json.loads((CONTRACTS / "names.json").read_text())["settings"],
        "errors": ["USE_RETENTION_TOO_SHORT"],
        "commands": [f"## use-spark {name}\n" for name in reference_pages.commands()],
    }[topic]
    assert expected
    assert all(name in text for name in expected if name not in NOT_SET_BY_HAND)


def test_signatures_of_the_reference_fit_their_column():
    text = reference_pages.TOPICS["procedures"]()
    calls = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    assert len(calls) == len(procedures())
    assert all(len(line) <= reference_pages.COLUMN_WIDTH for call in calls for line in call.splitlines())
    assert " ".join(calls[sorted(procedures()).index("optimize")].split()).replace("( ", "(") == (
        f"CALL {procedures()['optimize'].signature}"
    )


def _defaults_said():
    """The defaults in the tables of the guides, each with its page, by the full name of the property or conf."""
    older, newer = "use.optimization.", "use.optimization.autoOptimize."
    prefixes = {("docs/automatic.md", "Properties"): [newer, older]}
    said = []
    for page in pages():
        for headings, header, rows in _tables(page):
            if header[0] not in ("key", "property", "conf") or header[1] != "default":
                continue
            of_page = prefixes.get((page, headings[-1]), [])
            prefix = of_page.pop(0) if of_page else ""
            said += [(page, prefix + name, row[1]) for row in rows for name in _names(row[0])]
    return said


def test_defaults_in_the_guides_are_those_declared():
    declared = {s.name: s for s in (*PROPERTIES.values(), *SESSION_SETTINGS, *SERVICE_SETTINGS)}
    said = _defaults_said()
    for page, name, default in said:
        setting = declared.get(name)
        if setting is not None and setting.default:
            assert default == f"`{setting.default}`", (page, name)
        elif setting is not None:
            assert default.replace("`", "") in setting.unset, (page, name)
    assert {name for name, setting in declared.items() if setting.default} <= {name for _, name, _ in said}


def test_properties_of_steps_in_the_guide_name_their_option():
    prefix = "stepConsolidation."
    (rows,) = [rows for _, _, rows in _tables("docs/automatic.md") if any(prefix in row[0] for row in rows)]
    said = {_names(row[2])[0]: _names(row[0])[0] for row in rows if row[0].strip("`").startswith(prefix)}
    said.pop("StepConsolidation")  # whether it runs
    options = {o.name for o in strategies()["StepConsolidation"].options}
    assert said == {name: property_key(prefix, name) for name in said}
    assert options - set(said) == {"timestamp_start", "timestamp_end"}


def test_options_of_clustering_and_compaction_in_the_guide_are_those_of_their_strategies():
    rows = _below("docs/automatic.md", "Clustering and compaction", "key")[0]
    said = {_names(row[0])[0] for row in rows}
    families = {
        "use.clustering.": ("SizeTieredClustering",),
        "use.compaction.": ("DeleteCompaction", "LatestRowCompaction"),
    }
    for prefix, names in families.items():
        of_strategies = {property_key(prefix, o.name) for name in names for o in strategies()[name].options}
        assert {key for key in said if key.startswith(prefix)} - of_strategies <= {
            f"{prefix}{key}" for key in ("enabled", "interval", "commits")
        }


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        (
            "docs/sql.md",
            f"{DEFAULT_BYTES_PER_ITER:,} for compaction, and {int(BATCH_BYTES.default):,} for `UnindexedFiles`",
        ),
        ("docs/sql.md", f"Bytes of a merged file, at most; {MAX_FILE_BYTES.unset} by default"),
        (
            "docs/automatic.md",
            f"If it is not set, `UnindexedFiles` and `RevisionRewrite` take `{BATCH_BYTES.default}`",
        ),
        (
            "docs/plain-tables.md",
            f"below {ISOLATE_BYTES.value({}) >> 20} MB become files of up to {DEFAULT_FILE_BYTES >> 30} GB",
        ),
        ("docs/howto/from-tiledb.md", f"`max_file_bytes` | {DEFAULT_FILE_BYTES >> 30} GiB by default"),
        ("docs/howto/tuning.md", f"`bytes_per_iter` | {DEFAULT_BYTES_PER_ITER // 10**9} GB for compaction"),
        ("docs/howto/tuning.md", f"`bytes_per_iter`, or {int(BATCH_BYTES.default) // 10**9} GB"),
    ],
)
def test_defaults_in_sentences_are_those_declared(page, sentence):
    assert sentence in " ".join((ROOT / page).read_text(encoding="utf-8").split())


def test_an_option_of_several_strategies_has_one_declaration():
    declared = {}
    for found in strategies().values():
        for option in found.options:
            assert declared.setdefault(option.name, option) == option
    assert {o.name: o.default for o in declared.values()}["batch_bytes"] == BATCH_BYTES.value({})


def test_defaults_have_their_type():
    for setting in (*PROPERTIES.values(), *SESSION_SETTINGS, *SERVICE_SETTINGS):
        assert setting.default is None or setting.parse(setting.default) is not None
        assert setting.doc.endswith("."), setting.name
