"""Logs of tables that are read without Spark, with the tags of files, as any writer may have left them."""

from __future__ import annotations

import json
import tempfile
import zipfile
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from reader_tables import STORED

from catalog.history.event_files import parse_events
from catalog.insights.recent_statements import LoggedStatement
from catalog.insights.statement_notes import StatementNotes
from catalog.predicates.conditions import AllOf
from catalog.pruning.read_planning import plan_read
from catalog.state.state_files import Unreadable
from inputs.cases import Reader
from inputs.mutations import changed_bytes, changed_value, json_text, odd_text
from inputs.property_inputs import revisions
from otree.block import BAND_TAG, BLOCKS_TAG, REVISION_TAG, REWRITES_TAG, TIER_TAG, TIME_RANGE_TAG, WRITE_TAG
from procedures.insight.report.lake import DayOfWork
from sql_ext.commands.overview import overview_of_log
from sql_ext.diagnosis.diagnose import diagnose
from sql_ext.from_log.files_of_log import file_table_of
from sql_ext.from_log.health import diagnosis_of
from sql_ext.from_log.log_table import LogTable
from sql_ext.readers import scan
from sql_ext.readers.delta_files import reading
from sql_ext.readers.file_selection import IndexedFiles
from sql_ext.readers.log_entries import LogEntry, _added

_TABLE = "indexed"
_BLOCKS = [
    {"cubeId": "", "minWeight": -(2**31), "maxWeight": 5, "elementCount": 10},
    {"cubeId": "w", "minWeight": 6, "maxWeight": 2**31 - 1, "elementCount": 3},
]
_TAGS = {
    REVISION_TAG: "1", BLOCKS_TAG: _BLOCKS, WRITE_TAG: "w", BAND_TAG: "-5,7",
    TIME_RANGE_TAG: "1,2", REWRITES_TAG: "1.5",
    TIER_TAG: "2",
}  # fmt: skip
VECTOR = {
    "storageType": "u",
    "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
    "offset": 1,
    "sizeInBytes": 36,
    "cardinality": 2,
}
_COMMIT = [
    {"commitInfo": {"timestamp": 1_700_000_000_000, "operation": "DELETE", "isBlindAppend": False,
                    "operationParameters": {"predicate": '["(x#1 > 5)"]'}, "tags": {"a": "b"}, "readVersion": 3}},
    {"remove": {"path": "a.parquet", "dataChange": True, "deletionTimestamp": 1_700_000_000_000}},
    {"add": {"path": "b.parquet", "size": 5, "partitionValues": {}, "modificationTime": 1,
             "dataChange": True, "tags": {}}},
]  # fmt: skip
_CLUSTERED_PROTOCOL = {
    "protocol": {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["timestampNtz"],
        "writerFeatures": ["clustering", "domainMetadata", "timestampNtz"],
    }
}
_NOTE = {"repeats": 2, "plain_files": {"SMALL": 3}, "keys_error": "USE_X"}


@cache
def stored_files() -> dict[str, bytes]:
    """The files of a table that Spark made, by path."""
    with zipfile.ZipFile(STORED) as stored:
        names = [name for name in stored.namelist() if name.startswith(f"{_TABLE}/")]
        return {name.removeprefix(f"{_TABLE}/"): stored.read(name) for name in names}


# --------------------------------------------------------------------------------------------------------- whole tables


def _table(chance: Random) -> dict[str, bytes]:
    """Files of a table that differ from the stored ones."""
    changed: dict[str, bytes] = {}
    names = sorted(stored_files())
    commits = [name for name in names if name.endswith(".json")]
    for _ in range(chance.choice((1, 1, 2))):
        name = chance.choice(commits if chance.random() < 0.85 else names)
        data = changed.get(name, stored_files()[name])
        changed[name] = _changed_commit(chance, data) if name.endswith(".json") else changed_bytes(chance, data)
    return changed


def _changed_commit(chance: Random, data: bytes) -> bytes:
    try:
        lines = [json.loads(line) for line in data.decode().split("\n") if line]
    except ValueError:
        return changed_bytes(chance, data)  # it was changed before
    at = chance.randrange(len(lines))
    kind = chance.random()
    if kind < 0.1:
        return changed_bytes(chance, data)
    if kind < 0.2:
        lines[at] = changed_value(chance, lines[at])
    action = lines[at]
    name = next(iter(action), "") if isinstance(action, dict) else ""
    if kind >= 0.2 and isinstance(action, dict) and isinstance(action.get(name), dict):
        action[name] = changed_value(chance, action[name])
    if kind > 0.6:
        for each in lines:
            if isinstance(each, dict) and isinstance(each.get("add"), dict):
                each["add"]["tags"] = _text_tags(chance)
    if kind > 0.9:
        lines = [
            {**each, "metaData": _metadata(chance, each["metaData"])} if "metaData" in each else each for each in lines
        ]
    if 0.5 < kind < 0.7:
        lines = [_CLUSTERED_PROTOCOL if "protocol" in each else each for each in lines]
        lines.append({"domainMetadata": changed_value(chance, _clustering(chance))})
    return "\n".join(map(json.dumps, lines)).encode()


def _clustering(chance: Random) -> dict[str, Any]:
    columns = json_text(chance, {"clusteringColumns": [["x"], ["s", "f"]]})
    return {"domain": "delta.clustering", "configuration": columns, "removed": False}


def _metadata(chance: Random, metadata: Any) -> Any:
    if not isinstance(metadata, dict):
        return metadata
    properties = changed_value(chance, metadata.get("configuration", {}))
    texts = {str(k): str(v) for k, v in properties.items()} if isinstance(properties, dict) else {}
    return {**metadata, "configuration": texts}


def _read_table(changed: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as root:
        folder = Path(root, "t")
        for name, data in {**stored_files(), **changed}.items():
            Path(folder, name).parent.mkdir(parents=True, exist_ok=True)
            Path(folder, name).write_bytes(data)
        Path(root, "outside.parquet").write_bytes(next(iter(stored_files().values())))
        errors: list[BaseException] = []
        for look in (_overview, _health, _rows, diagnose):
            try:
                look(folder)
            except Exception as error:  # noqa: BLE001, PERF203 - the first one is the outcome, after all looks
                errors.append(error)
        bare = [error for error in errors if not hasattr(error, "code")]
        if errors:
            raise (bare or errors)[0]


def _overview(folder: Path) -> None:
    overview_of_log(LogTable.of(folder, {}))


def _health(folder: Path) -> None:
    diagnosis_of(LogTable.of(folder, {}))


def _rows(folder: Path) -> None:
    scan(str(folder)).to_table()
    scan(str(folder), fraction=0.5).to_table()


# ----------------------------------------------------------------------------------------------------------------- tags


def _text_tags(chance: Random) -> dict[str, str]:
    """Tags of a file, one or two of which are odd."""
    tags = dict(_TAGS)
    for _ in range(chance.choice((0, 1, 1, 2))):
        name = chance.choice(sorted(tags))
        tags[name] = changed_value(chance, tags[name]) if chance.random() < 0.5 else odd_text(chance)
    return {name: value if isinstance(value, str) else json_text(chance, value) for name, value in tags.items()}


def _read_tags(made: tuple[dict[str, str], Any]) -> None:
    tags, vector = made
    files = _Files(LogEntry(tags, checked_vector(vector), times_are_known=True))
    with reading("/t"):
        table = file_table_of(files, {1: 2}, [], is_partitioned=False)  # type: ignore[arg-type]
    assert len(table) == 1
    plan = plan_read(json.dumps(revisions()), AllOf(()))
    IndexedFiles(plan).may_have_rows(tags)


def checked_vector(vector: Any) -> Any:
    """A descriptor as the reader of the log lets it through."""
    try:
        return next(iter(_added({"path": "a", "deletionVector": vector}, times_are_known=True)))[1].deletion_vector
    except (ValueError, KeyError, TypeError, AttributeError):
        return None  # then no file of the table is read


class _Files:
    """A version with one file."""

    location = "/t"
    actions = pa.table(
        {"path": ["a.parquet"], "size_bytes": [5], "modification_time": [1], "num_records": [13], "partition": [{}]}
    )

    def __init__(self, entry: LogEntry) -> None:
        self._entry = entry

    def entry(self, _path: str) -> LogEntry:
        return self._entry


# ------------------------------------------------------------------------------------------------------- parts of a log


def _read_commit(text: str) -> None:
    try:
        LoggedStatement.of(text)
    except ValueError:
        pass  # as declared: the commit is left out


def _read_notes(text: str) -> None:
    notes = StatementNotes.of([text, text])
    assert notes.plain_total < 2**63
    assert notes.key_errors_total < 2**63


def _commit(chance: Random) -> str:
    return "\n".join(json_text(chance, action) for action in _COMMIT)


def _day(text: str) -> None:
    events = parse_events(text)
    if not isinstance(events, Unreadable):
        DayOfWork.of(events)


def readers() -> list[Reader]:
    """The readers of logs and files."""
    events = {
        "write_id": "w",
        "state": "committed",
        "started_at": 1,
        "input_files_stats": {"bytes": 5},
        "table_id": "t",
    }
    return [
        Reader("log: a table", _table, _read_table, share=2),
        Reader("log: tags of files", lambda c: (_text_tags(c), changed_value(c, VECTOR)), _read_tags, share=8),
        Reader("log: commits of others", _commit, _read_commit),
        Reader("log: notes of statements", lambda c: json_text(c, _NOTE), _read_notes),
        Reader("log: events of a day", lambda c: json_text(c, events), _day),
    ]
