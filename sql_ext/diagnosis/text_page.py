"""A diagnosis as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from catalog.control_characters import without_control_characters
from catalog.quantities import share_text, size_text
from sql_ext.commands.terminal_table import terminal_table
from sql_ext.diagnosis.many_tables import Diagnoses
from sql_ext.diagnosis.prediction import ReadShares
from sql_ext.diagnosis.results import TableDiagnosis

# More columns do not fit on a screen.
MOST_COLUMNS = 16
COLUMN_HEADER = ("column", "type", "distinct", "today", "with pages", "indexed")


def diagnoses_text(found: Diagnoses, width: int = 110, most: int = 40) -> str:
    """Returns one table in full, or a line per table.

    Args:
        found: the diagnoses.
        width: of the terminal, in characters.
        most: number of tables to show.
    """
    if len(found.tables) == 1 and not found.unreadable:
        return table_page(found.tables[0], width)
    return overview_page(found, width, most)


def table_page(found: TableDiagnosis, width: int) -> str:
    """Returns the diagnosis of one table.

    Args:
        found: the diagnosis.
        width: of the terminal, in characters.
    """
    return "\n".join(_lines(found, width))


def _lines(found: TableDiagnosis, width: int) -> Iterator[str]:
    yield without_control_characters(f"{found.location} (version {found.version})")
    for text in facts_of(found):
        yield f"  {without_control_characters(text)}"
    if found.columns:
        yield ""
        yield "Share of the bytes that a range of 1 % of the values of a column reads"
        rows = _without_control_characters(column_rows(found))
        table = terminal_table(
            COLUMN_HEADER, rows[:MOST_COLUMNS], [n > 1 for n in range(len(COLUMN_HEADER))], width - 2
        )
        yield from (f"  {line}" for line in table.text.rstrip("\n").split("\n"))
        hidden = (
            len(rows) - MOST_COLUMNS + found.left_out_columns if len(rows) > MOST_COLUMNS else found.left_out_columns
        )
        if hidden:
            yield f"  {hidden} more columns: --json shows those with statistics"
    yield ""
    yield "What USE would change"
    for text in changes_of(found):
        yield f"  {without_control_characters(text)}"
    yield ""
    yield without_control_characters(found.verdict.sentence)
    if found.verdict.command:
        yield f"  {without_control_characters(found.verdict.command)}"


def _without_control_characters(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Rows whose names, which others may have chosen, control no terminal."""
    return [[without_control_characters(cell) for cell in row] for row in rows]


def facts_of(found: TableDiagnosis) -> list[str]:
    """Returns what the log says of a table, as texts."""
    rows = "an unknown number of rows" if found.rows is None else f"{found.rows:,} rows"
    target = size_text(found.target_file_bytes)
    facts = [f"{size_text(found.bytes)} in {found.files:,} files, {rows}"]
    if found.small_files:
        facts.append(f"{found.small_files:,} small files, of less than a quarter of {target}")
    if found.partitioned_by:
        facts.append(f"partitioned by {', '.join(found.partitioned_by)}")
    if found.index_columns:
        facts.append(f"indexed by {', '.join(found.index_columns)}; {size_text(found.unindexed_bytes)} are not indexed")
    if found.deleted_rows:
        facts.append(
            f"{found.deleted_rows:,} deleted rows in {found.files_with_deleted_rows:,} files, which reads still load"
        )
    log = found.log
    text = f"log: {log.commits:,} commits, {size_text(log.bytes)}; {log.since_checkpoint:,} since the last checkpoint"
    facts.append(text)
    if log.tiny_commits:
        facts.append(f"{log.tiny_commits} of the last {log.looked_at} commits added less than 1 MB")
    return facts


def column_rows(found: TableDiagnosis) -> list[tuple[str, ...]]:
    """Returns a row per column, for ``COLUMN_HEADER``."""
    rows: list[tuple[str, ...]] = []
    for column in found.columns:
        reads = column.reads
        shares = ("", "", "") if reads is None else _shares(reads)
        kind = f"{column.type} (partition)" if column.is_partition else column.type
        distinct = "" if column.distinct is None else f"{column.distinct:,}"
        rows.append((column.name, kind, distinct, *shares))
    return rows


def _shares(reads: ReadShares) -> tuple[str, str, str]:
    return _share(reads.today), _share(reads.today_with_pages), _share(reads.indexed)


def changes_of(found: TableDiagnosis) -> list[str]:
    """Returns what an index would change, as texts."""
    if found.recommended is None:
        texts = ["index columns: none"]
        return [*texts, f"a sample of 1 % of the rows reads {_share(found.sample.today)} of the bytes", *found.notes]
    what = f"{found.queries} queries" if found.queries else "assumed queries, ranges of times, keys and names"
    texts = [f"index columns: {found.recommended} (files of {size_text(found.target_file_bytes)})"]
    texts.append(f"{what}: {_change(found.workload_today, found.workload_indexed)}")
    if found.box is not None:
        texts.append(f"a box of these columns with 1 % of the rows: {_change(found.box.best_today, found.box.indexed)}")
    texts.append(f"a sample of 1 % of the rows: {_change(found.sample.today, found.sample.indexed)}")
    texts.append(f"to write once: {size_text(found.bytes)}")
    return [*texts, *found.notes]


def _change(today: float, indexed: float | None) -> str:
    return f"{_share(today)} of the bytes today, {_share(indexed)} with the index"


def overview_page(found: Diagnoses, width: int, most: int) -> str:
    """Returns a line per table, those with the largest gain first.

    Args:
        found: the diagnoses.
        width: of the terminal, in characters.
        most: number of tables to show.
    """
    header = ("table", "size", "files", "small", "gain", "today", "indexed", "saved per read", "columns")
    numeric = (False, True, True, True, False, True, True, True, False)
    rows = _without_control_characters([overview_row(table) for table in found.tables[:most]])
    lines = [terminal_table(header, rows, numeric, width, ("small", "files")).text.rstrip("\n")] if rows else []
    if len(found.tables) > most:
        lines.append(f"{len(found.tables) - most:,} more tables: --limit, --json or --html shows them")
    lines += [without_control_characters(f"{one.location}: {one.code}: {one.message}") for one in found.unreadable]
    return "\n".join([*lines, "", totals_of(found)])


def overview_row(found: TableDiagnosis) -> tuple[str, ...]:
    """Returns a table as a row of the overview."""
    has_index = found.recommended is not None
    saved = size_text(found.verdict.saved_bytes) if found.verdict.saved_bytes else ""
    return (
        found.location,
        size_text(found.bytes),
        f"{found.files:,}",
        f"{found.small_files:,}",
        found.verdict.gain.value.lower(),
        _share(found.workload_today) if has_index else "",
        _share(found.workload_indexed) if has_index else "",
        saved,
        found.recommended or "",
    )


def totals_of(found: Diagnoses) -> str:
    """Returns a sentence about all tables."""
    gains: dict[str, int] = {}
    for table in found.tables:
        gains[table.verdict.gain.value.lower()] = gains.get(table.verdict.gain.value.lower(), 0) + 1
    parts = ", ".join(f"{count:,} {gain}" for gain, count in sorted(gains.items(), key=lambda pair: -pair[1]))
    size = size_text(sum(table.bytes for table in found.tables))
    unreadable = f"; {len(found.unreadable):,} could not be read" if found.unreadable else ""
    return f"{len(found.tables):,} tables with {size}: {parts}{unreadable}" if parts else f"no table{unreadable}"


def _share(share: float | None) -> str:
    return "" if share is None else share_text(share)
