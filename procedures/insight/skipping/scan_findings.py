"""Why the files of a scan are not skipped: what its conditions lack, and what its files lack. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from pyspark.sql.types import NumericType, StringType

from catalog.columns.column_names import find_stored, logical_name, shown_name
from catalog.counted_nouns import agreeing, counted
from catalog.jvm.skipping_report import PlannedCondition, SkippingScan
from catalog.properties.index_properties import COLUMNS_KEY
from catalog.properties.inherited import NOTHING_INHERITED
from catalog.pruning.read_planning import readable_revisions
from otree.revision import Revision
from procedures.insight.health.remedy import sql_text
from procedures.insight.skipping.condition_findings import IndexedColumns, conjuncts, finding_of
from procedures.insight.skipping.reasons import Finding, SkippingReason


def findings_of(scan: SkippingScan, *, pruning_enabled: bool) -> list[Finding]:
    """Returns the reasons why files of a scan are not skipped.

    Args:
        scan: the scan.
        pruning_enabled: whether the session lets the index select files.
    """
    revisions = readable_revisions(scan.configuration)
    newest = revisions[max(revisions)] if revisions else None
    names = tuple(shown_name(scan.schema, column) for column in newest.columns) if newest is not None else ()
    index = IndexedColumns(scan.counts["table"], scan.configuration, newest, names)
    conditions = list(conjuncts(scan.conditions))
    findings = []
    is_joined = any(join["reason"] is None for join in scan.counts["joins"])
    if not conditions and not scan.counts["is_limited"] and not is_joined:
        hint = f" on an indexed column ({index.shown})" if names else ""
        findings.append(Finding(SkippingReason.NO_FILTER, None, f"Add a condition{hint} to read fewer files."))
    # Of a range, one side often covers all values.
    narrowed = {c.column for c in conditions if index.narrows(c, newest)}
    for condition in conditions:
        finding = finding_of(condition, index)
        is_other_side = condition.column in narrowed and condition.subject == "column"
        if finding is not None and not (is_other_side and finding.reason is SkippingReason.UNSELECTIVE_CONDITION):
            findings.append(finding)
    return [*findings, *_of_files(scan, index, revisions, conditions, pruning_enabled=pruning_enabled)]


def _of_files(
    scan: SkippingScan,
    index: IndexedColumns,
    revisions: dict[int, Revision],
    conditions: Sequence[PlannedCondition],
    *,
    pruning_enabled: bool,
) -> Iterator[Finding]:
    if not conditions:
        return
    yield from _missing_statistics(scan)
    read = (scan.counts["kept_files"], scan.counts["kept_bytes"])
    table = sql_text(index.table)
    if index.newest is None:
        if COLUMNS_KEY in NOTHING_INHERITED.effective(json.loads(scan.configuration)):
            message = "No file is indexed yet."
            yield Finding(SkippingReason.UNINDEXED_FILES, None, message, *read)
        else:
            message = (
                f"CALL use.recommend(table => {table}, queries => array(…)) measures whether an index on the columns "
                "that queries limit saves bytes."
            )
            yield Finding(SkippingReason.NOT_INDEXED, None, message, *read)
        return
    helping = [c for c in conditions if c.subject == "hash" or index.narrows(c, index.newest)]
    if not pruning_enabled:
        message = "Set spark.qbeast.use.pruning.enabled to true, so that the index selects files."
        yield Finding(SkippingReason.SWITCHED_OFF, None, message)
    elif helping:
        yield from _unindexed(scan, revisions)
        yield from _old_revisions(scan, index, revisions, helping)


def _unindexed(scan: SkippingScan, revisions: dict[int, Revision]) -> Iterator[Finding]:
    groups = [group for group in scan.read if group.files and _revision(group.revision, revisions) is None]
    if groups:
        files, size = sum(group.files for group in groups), sum(group.bytes for group in groups)
        message = (
            f"{counted(files, 'file')} without index {agreeing(files, 'is', 'are')} read whatever the conditions on "
            "indexed columns are."
        )
        yield Finding(SkippingReason.UNINDEXED_FILES, None, message, files, size)


def _old_revisions(
    scan: SkippingScan, index: IndexedColumns, revisions: dict[int, Revision], helping: Sequence[PlannedCondition]
) -> Iterator[Finding]:
    for group in scan.read:
        revision = _revision(group.revision, revisions)
        if revision is None or revision == index.newest or not group.files:
            continue
        useless = [_text(c) for c in helping if not index.narrows(c, revision)]
        useless = list(dict.fromkeys(useless))
        if useless:
            columns = ", ".join(shown_name(scan.schema, stored) for stored in revision.columns)
            message = (
                f"{counted(group.files, 'file')} of revision {revision.revision_id} ({columns}) cannot be skipped by "
                f"{agreeing(len(useless), 'this condition', 'these conditions')}; the newest revision has "
                f"{index.shown}."
            )
            yield Finding(SkippingReason.OLD_REVISION, " AND ".join(useless), message, group.files, group.bytes)


def _text(condition: PlannedCondition) -> str:
    return "the sample" if condition.subject == "hash" else condition.text


def _missing_statistics(scan: SkippingScan) -> Iterator[Finding]:
    total = scan.counts["total_files"]
    for stored, files in scan.without_statistics.items():
        column = find_stored(scan.schema, stored)
        if not files or column is None or not _has_bounds(column.data_type):
            continue
        name = logical_name(scan.schema, stored)
        if files == total:
            help_ = (
                "Delta collects statistics of the columns in the table property delta.dataSkippingStatsColumns, else "
                "of the first delta.dataSkippingNumIndexedCols columns; add this column"
            )
        else:
            help_ = "The step STATISTICS adds them to files without any"
        have = agreeing(files, "has", "have")
        message = f"{counted(files, 'file')} of {total} {have} no minimum and maximum of {name}. {help_}."
        yield Finding(SkippingReason.MISSING_STATISTICS, name, message, files)


def _has_bounds(data_type: object) -> bool:
    """Whether Delta collects minimum and maximum of columns of a type."""
    if isinstance(data_type, (NumericType, StringType)):
        return True
    return type(data_type).__name__ in ("DateType", "TimestampType", "TimestampNTZType")


def _revision(tag: str, revisions: dict[int, Revision]) -> Revision | None:
    return revisions.get(int(tag)) if tag.isdecimal() else None
