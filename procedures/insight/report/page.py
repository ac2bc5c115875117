"""The page of a report: HTML without references to other resources."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone

from catalog.quantities import share_text, size_text
from procedures.declare.html_table import html_table
from procedures.insight.health.adviser import NOTHING_TO_DO
from procedures.insight.health.score import SCALES
from procedures.insight.report import plots
from procedures.insight.report.facts import MAX_CUBES, TableFacts

STYLE = """
:root { color-scheme: light dark; --ink: #1f2933; --faint: #b8c0c8; --first: #33658f; --second: #c0504d;
  --third: #2e7d4f; --fourth: #a01858; --paper: #ffffff; --soft: #f2f4f7; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ed; --faint: #59636e; --first: #7fb3e0; --second: #f09a96;
  --third: #7fd0a0; --fourth: #f07ab8; --paper: #14181c; --soft: #20262c; } }
.use-report { background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif;
  margin: 0 auto; max-width: 60rem; padding: 1rem; }
.use-report h1 { font-size: 1.5rem; overflow-wrap: anywhere; }
.use-report h2 { font-size: 1.15rem; margin: 2rem 0 .3rem; }
.use-report table { border-collapse: collapse; font-size: .9rem; } .use-report .wide { overflow-x: auto; }
.use-report th, .use-report td { border-bottom: 1px solid var(--faint); padding: .25rem .6rem; text-align: left;
  vertical-align: top; } .use-report td.number { font-variant-numeric: tabular-nums; text-align: right; }
.use-report figure { margin: .5rem 0; } .use-report svg { height: auto; max-width: 44rem; width: 100%; }
.use-report details { margin: .4rem 0; } .use-report summary { cursor: pointer; }
.use-report code { background: var(--soft); overflow-wrap: anywhere; padding: .1rem .3rem; }
.use-report .score { font-size: 2.4rem; font-weight: 600; }
"""


def page(facts: TableFacts) -> str:
    """Returns the whole page of a table; without pictures if the package that draws them is not installed.

    Args:
        facts: what it shows.
    """
    title = f"Report of {html.escape(facts.name)}"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1"></head>\n'
        f'<body style="margin:0">{body(facts)}</body></html>\n'
    )


def body(facts: TableFacts) -> str:
    """Returns the content of the page with its style, for a place in another page such as a notebook; see ``page``.

    Args:
        facts: what it shows.
    """
    missing = plots.missing_package()
    note = [] if missing is None else [f"<p>{html.escape(missing)}</p>"]
    sections = [_head(facts), *note, _health(facts), _steps(facts)]
    sections += [*_index(facts), *_files(facts), *_filtered_columns(facts), *_statements(facts), *_history(facts)]
    return f'<main class="use-report"><style>{STYLE}</style>\n' + "\n".join(sections) + "\n</main>"


def _head(facts: TableFacts) -> str:
    made = datetime.fromtimestamp(facts.made_at / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    rows = "unknown" if facts.rows is None else f"{facts.rows:,}"
    columns = ", ".join(facts.index_columns) or "none"
    summary = table(
        ("version", "rows", "files", "bytes", "indexed columns"),
        [(facts.version, rows, facts.files, size_text(facts.bytes), columns)],
    )
    choice = "" if facts.column_choice is None else f"<p>Index columns: {html.escape(facts.column_choice)}.</p>"
    return f"<h1>{html.escape(facts.name)}</h1><p>Report of {made}, from metadata.</p>{summary}{choice}"


def _health(facts: TableFacts) -> str:
    rows = []
    for part in sorted(facts.parts, key=lambda part: -part.lost):
        cost = "" if part.cost_bytes is None else size_text(part.cost_bytes)
        rows.append((part.name, f"{part.value:.3g}", SCALES[part.name].unit, f"{part.lost:g}", cost))
    header = ("part", "value", "unit", "points lost", "cost per read")
    return f'<h2>Health</h2><p><span class="score">{facts.score}</span> of 100</p>' + (
        table(header, rows) if rows else "<p>Nothing was measured.</p>"
    )


def _steps(facts: TableFacts) -> str:
    rows = [
        (step.statement, "" if step.saved_bytes is None else size_text(step.saved_bytes), step.reason)
        for step in facts.steps
    ]
    header = ("statement", "saved per read", "why")
    shown = table(header, rows, code=0) if rows else f"<p>{html.escape(NOTHING_TO_DO)}</p>"
    return f"<h2>What to do</h2>{shown}"


def _index(facts: TableFacts) -> list[str]:
    if not facts.index_columns:
        return ["<h2>Index</h2><p>The table has no index.</p>"]
    left_out = facts.all_cubes - len(facts.cubes)
    more = f" {left_out} deeper cubes are not drawn, beyond {MAX_CUBES}." if left_out else ""
    shown = " and ".join(facts.shown_columns)
    sections = []
    if facts.cubes:
        described = f"{facts.all_cubes} cubes of the newest revision over {shown}, as shares of the index space.{more}"
        numbers = table(("depth", "rows"), facts.depths)
        sections.append(_figure("Cubes over the index space", described, plots.cubes(facts), ""))
        sections.append(_figure("Rows per depth", "The root has depth 0.", plots.depths(facts), numbers))
    if facts.bands:
        numbers = table(("weights up to", "bytes"), [(f"{end:.4g}", size_text(size)) for end, size in facts.bands])
        sections.append(
            _figure("Bytes per band of weights", "Samples read the lower bands.", plots.bands(facts), numbers)
        )
    if facts.samples:
        numbers = table(
            ("fraction", "bytes read", "of a fresh index"),
            [(f"{fraction:g}", size_text(read), size_text(best)) for fraction, read, best in facts.samples],
        )
        described = "Bytes that a sample reads now, of a fresh index, and in the ideal case."
        sections.append(_figure("Cost of a sample", described, plots.samples(facts.samples), numbers))
    return sections


def _files(facts: TableFacts) -> list[str]:
    if not facts.files:
        return ["<h2>Files</h2><p>The table has no files.</p>"]
    levels: dict[int, list[float]] = {}
    for level, size in zip(facts.levels.tolist(), facts.sizes.tolist(), strict=True):
        levels.setdefault(int(level), []).append(size)
    rows = [
        ("not indexed" if level < 0 else level, len(sizes), size_text(round(sum(sizes))))
        for level, sizes in sorted(levels.items())
    ]
    numbers = table(("level", "files", "bytes"), rows)
    return [_figure("Files by size", f"{facts.files:,} files.", plots.sizes(facts), numbers)]


def _filtered_columns(facts: TableFacts) -> list[str]:
    if facts.filtered_columns is None:
        return []
    if not facts.filtered_columns:
        return ["<h2>What queries asked</h2><p>No scan was recorded yet.</p>"]
    rows = [
        (
            filtered.columns or "no column",
            filtered.scans,
            _optional(filtered.selectivity),
            share_text(filtered.skipped),
        )
        for filtered in facts.filtered_columns
    ]
    header = ("columns of conditions", "scans", "share of rows kept", "bytes skipped")
    return [f"<h2>What queries asked</h2>{table(header, rows)}"]


def _statements(facts: TableFacts) -> list[str]:
    notes = facts.statements
    if not notes.statements:
        return []
    row = (
        notes.statements,
        notes.repeated,
        notes.plain_total,
        notes.reasons or "none",
        notes.key_error_codes or "none",
    )
    header = ("statements", "ran again after a rewrite", "files without a layout", "reasons", "unread keys of MERGE")
    described = "<p>Statements of sessions with USE that rewrote rows, as far as the log has their commits.</p>"
    return [f"<h2>Statements</h2>{described}{table(header, [row])}"]


def _history(facts: TableFacts) -> list[str]:
    sections = []
    if len(facts.versions) > 1:
        rows = [
            (then.version, share_text(then.unindexed_share), share_text(then.fragmentation), _optional(then.sample))
            for then in facts.versions
        ]
        numbers = table(("version", "unindexed share", "fragmentation", "1 % sample, relative to a fresh index"), rows)
        described = "Versions that the log can make, evenly spaced."
        sections.append(_figure("Over versions", described, plots.versions(facts.versions), numbers))
    if not facts.events:
        return [*sections, "<h2>Optimizations</h2><p>There was none yet.</p>"]
    events = [
        (
            plots.date(event.started_at),
            event.kind,
            event.strategy,
            event.state,
            size_text(event.bytes_in),
            size_text(event.bytes_out),
        )
        for event in reversed(facts.events)
    ]
    numbers = table(("began (UTC)", "kind", "strategy", "outcome", "bytes in", "bytes out"), events)
    described = f"The last {len(facts.events)} optimizations and vacuums: bytes read and written."
    sections.append(_figure("Optimizations", described, plots.timeline(facts.events), numbers))
    return sections


def _optional(number: float | None) -> str:
    return "" if number is None else f"{number:.3g}"


def _figure(title: str, description: str, draw: plots.Drawing, numbers: str) -> str:
    if plots.missing_package() is not None:
        return f"<h2>{html.escape(title)}</h2><p>{html.escape(description)}</p>{numbers}" if numbers else ""
    details = f"<details><summary>Numbers: {title}</summary>{numbers}</details>" if numbers else ""
    picture = plots.svg(title, description, draw)
    return (
        f"<h2>{html.escape(title)}</h2><figure>{picture}<figcaption>{html.escape(description)}</figcaption></figure>"
        f"{details}"
    )


def table(header: Sequence[str], rows: Iterable[Sequence[object]], code: int | None = None) -> str:
    """Returns a table that can be scrolled with the keyboard; all texts are escaped.

    Args:
        header: names of the columns.
        rows: their values.
        code: number of a column with statements; None if there is none.
    """
    label = html.escape(f"Table: {', '.join(header)}", quote=True)
    return f'<div class="wide" tabindex="0" role="region" aria-label="{label}">{html_table(header, rows, code)}</div>'
