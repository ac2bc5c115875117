"""Diagnoses as one HTML file that can be mailed: no script, no outside resource."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from sql_ext.diagnosis.many_tables import Diagnoses
from sql_ext.diagnosis.results import TableDiagnosis
from sql_ext.diagnosis.text_page import COLUMN_HEADER, changes_of, column_rows, facts_of, overview_row, totals_of

_OVERVIEW = (
    "table",
    "size",
    "files",
    "small files",
    "gain",
    "read today",
    "with an index",
    "saved per read",
    "columns",
)
# A page with more tables in full would be too large for mail.
_MOST_IN_FULL = 200
_STYLE = """
:root { color-scheme: light dark; --ink: #1f2933; --faint: #b8c0c8; --bar: #33658f; --soft: #f2f4f7; --paper: #fff; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ed; --faint: #59636e; --bar: #7fb3e0; --soft: #20262c;
  --paper: #14181c; } }
body { background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; margin: 0 auto;
  max-width: 64rem; padding: 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.5rem; overflow-wrap: anywhere; }
table { border-collapse: collapse; font-size: .9rem; } .wide { overflow-x: auto; }
caption { font-weight: 600; padding: .6rem; text-align: left; }
th, td { border-bottom: 1px solid var(--faint); padding: .25rem .6rem; text-align: left; vertical-align: top; }
td.number { font-variant-numeric: tabular-nums; text-align: right; white-space: nowrap; }
code { background: var(--soft); overflow-wrap: anywhere; padding: .1rem .3rem; } ul { padding-left: 1.2rem; }
.verdict { border-left: .3rem solid var(--bar); padding-left: .8rem; }
"""


def diagnosis_page(found: Diagnoses) -> str:
    """Returns the page.

    Args:
        found: the diagnoses, those with the largest gain first.
    """
    parts = ["<h1>What an index would change</h1>", f"<p>{html.escape(totals_of(found))}.</p>"]
    if len(found.tables) > 1:
        rows = [overview_row(table) for table in found.tables]
        links = [f"#t{n}" if n < _MOST_IN_FULL else None for n in range(len(rows))]
        parts.append(_table("All tables", _OVERVIEW, rows, (1, 2, 3, 5, 6, 7), links))
    if found.unreadable:
        unreadable = [(one.location, one.code, one.message) for one in found.unreadable]
        parts.append("<h2>Not readable</h2>" + _table("Not readable", ("table", "code", "reason"), unreadable, ()))
    parts += [_section(number, table) for number, table in enumerate(found.tables[:_MOST_IN_FULL])]
    if len(found.tables) > _MOST_IN_FULL:
        parts.append(f"<p>Only the first {_MOST_IN_FULL} tables are shown in full.</p>")
    page = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Diagnosis of Delta tables</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{_STYLE}</style></head>\n<body><main>\n" + "\n".join(parts) + "\n</main></body></html>\n"
    )
    # Names of folders need not be valid Unicode.
    return page.encode("utf-8", "backslashreplace").decode("utf-8")


def _section(number: int, found: TableDiagnosis) -> str:
    command = f"<p><code>{html.escape(found.verdict.command)}</code></p>" if found.verdict.command else ""
    columns = ""
    if found.columns:
        caption = "Share of the bytes that a range of 1 % of the values of a column reads"
        columns = _table(caption, COLUMN_HEADER, column_rows(found), (2, 3, 4, 5))
    return (
        f'<section id="t{number}"><h2>{html.escape(found.location)}</h2>'
        f'<div class="verdict"><p>{html.escape(found.verdict.sentence)}</p>{command}</div>'
        f"{_list([f'version {found.version}', *facts_of(found)])}{columns}"
        f"<h3>With an index</h3>{_list(changes_of(found))}</section>"
    )


def _list(texts: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{html.escape(text)}</li>' for text in texts)}</ul>"


def _table(
    caption: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    numeric: Sequence[int],
    links: Sequence[str | None] | None = None,
) -> str:
    label = html.escape(caption, quote=True)
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in header)
    body = "".join(f"<tr>{_cells(row, numeric, links[n] if links else None)}</tr>" for n, row in enumerate(rows))
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{label}"><table><caption>{label}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cells(row: Sequence[str], numeric: Sequence[int], link: str | None) -> str:
    first = html.escape(row[0])
    cells = [f'<td>{first if link is None else f"""<a href="{link}">{first}</a>"""}</td>']
    for number, text in enumerate(row[1:], 1):
        kind = ' class="number"' if number in numeric else ""
        cells.append(f"<td{kind}>{html.escape(text)}</td>")
    return "".join(cells)
