"""Stored consolidation plans below ``_use/plans``: the files of each group, as text that any process can read.

``<id>.json`` describes the plan and is written last: a plan without it does not exist. ``<id>/part-00001.jsonl`` and so
on have a group per line, and about 2,000 names of files each. To execute a group, a process reads the first file and
one part. ``<id>.writing`` exists while a plan is written; a process that is killed leaves it behind.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import partial

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from catalog.errors import InvalidArgumentError, PlanUnreadableError, UnknownNameError
from catalog.state.plan_ids import is_plan_id
from catalog.state.state_files import FieldError, Fields, Missing, Unreadable, access_problem, parse, read
from catalog.table.managed_table import ManagedTable

PLANS_FOLDER = "plans"
_NAMES_PER_PART = 2000
PLAN_ENDING = ".json"
WRITING_ENDING = ".writing"
_ADVICE = "Groups of the plan cannot be rewritten; make another one with use.plan."
_MOST_GROUPS = 10_000_000


@dataclass(frozen=True)
class StoredGroup:
    """A group as it is stored. Only the files count; their facts are looked up when they are rewritten.

    Attributes:
        group_id: from 1.
        reason: code.
        revision_id: revision of the files, 0 for unindexed ones.
        partition: partition of the files, for people.
        paths: of the files, as in the log, one run after another.
        vectors: unique ids of their deletion vectors, '' without one.
        run_ends: position after the last file of each run.
        bytes: of the files.
        files_out: how many files are expected instead.
        depth_before: how many files of the set a point lies in, at most.
        depth_after: the same afterwards.
    """

    group_id: int
    reason: str
    revision_id: int
    partition: str
    paths: tuple[str, ...]
    vectors: tuple[str, ...]
    run_ends: tuple[int, ...]
    bytes: int
    files_out: int
    depth_before: int
    depth_after: int

    @property
    def runs(self) -> list[tuple[str, ...]]:
        """The paths of each run."""
        starts = (0, *self.run_ends[:-1])
        return [self.paths[start:end] for start, end in zip(starts, self.run_ends, strict=True)]


@dataclass(frozen=True)
class StoredPlan:
    """A plan without its groups.

    Attributes:
        plan_id: names it.
        table_id: Delta's metadata id of the table that it was made for.
        version: version that it was made for.
        created_at: epoch milliseconds.
        max_file_bytes: the size that files should have.
        groups: how many.
        first_groups: number of the first group of each part.
        part_digests: SHA-256 of the text of each part. A part that was edited is refused.
    """

    plan_id: str
    table_id: str
    version: int
    created_at: int
    max_file_bytes: int
    groups: int
    first_groups: tuple[int, ...]
    part_digests: tuple[str, ...] = ()

    @property
    def folder(self) -> str:
        """Folder of its parts and of the progress of its groups, relative to the state folder."""
        return f"{PLANS_FOLDER}/{self.plan_id}"


def new_plan_id() -> str:
    """An id that no other plan has."""
    return uuid.uuid4().hex[:12]


def check_plan_id(plan_id: str) -> None:
    """Refuses a text that cannot be the id of a plan.

    Raises:
        InvalidArgumentError: such a text.
    """
    if not is_plan_id(plan_id):
        raise InvalidArgumentError.of("plan", plan_id, "a plan_id that use.plan with store => true has returned")


def store_plan(table: ManagedTable, plan: StoredPlan, groups: Iterable[StoredGroup]) -> StoredPlan:
    """Stores a plan; it exists once everything is written.

    Args:
        table: the table.
        plan: the plan; its numbers of groups are filled in.
        groups: its groups, numbered from 1.

    Returns:
        The plan as it is stored.
    """
    first_groups: list[int] = []
    digests: list[str] = []
    lines: list[str] = []
    names = count = 0

    def write_part() -> None:
        text = "\n".join(lines)
        table.write_state(_part(plan, len(first_groups)), text)
        digests.append(_digest(text))

    table.write_state(f"{plan.folder}{WRITING_ENDING}", json.dumps({"created_at": plan.created_at}))
    for group in groups:
        if not lines or names >= _NAMES_PER_PART:
            if lines:
                write_part()
            lines, names = [], 0
            first_groups.append(group.group_id)
        lines.append(group_text(group))
        names += len(group.paths)
        count += 1
    if lines:
        write_part()
    stored = replace(plan, groups=count, first_groups=tuple(first_groups), part_digests=tuple(digests))
    table.write_state(f"{plan.folder}{PLAN_ENDING}", plan_text(stored))
    table.delete_state(f"{plan.folder}{WRITING_ENDING}")
    return stored


def plan_text(plan: StoredPlan) -> str:
    """The text of a plan's file, which ends with the digest of the rest."""
    return _json({**asdict(plan), "digest": _digest(_json(asdict(plan)))})


def group_text(group: StoredGroup) -> str:
    """The line of a group; see ``parse_group``."""
    return _json(asdict(group))


def _json(value: Mapping[str, object]) -> str:
    return json.dumps(value, separators=(",", ":"))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _part(plan: StoredPlan, number: int) -> str:
    return f"{plan.folder}/part-{number:05d}.jsonl"


def plan_ids(table: ManagedTable) -> list[str]:
    """The ids of the stored plans of a table."""
    return _ids(table, PLAN_ENDING)


def unfinished_plan_ids(table: ManagedTable) -> list[str]:
    """The ids of plans that are being written, and of those whose writing was interrupted."""
    return _ids(table, WRITING_ENDING)


def _ids(table: ManagedTable, ending: str) -> list[str]:
    names = (name.removesuffix(ending) for name in table.list_state(PLANS_FOLDER) if name.endswith(ending))
    return list(filter(is_plan_id, names))


def find_plan(table: ManagedTable, plan_id: str, table_id: str) -> StoredPlan:
    """Reads a plan.

    Args:
        table: the table.
        plan_id: id of the plan.
        table_id: Delta's metadata id of the table.

    Raises:
        InvalidArgumentError: not the id of a plan, or a plan of another table.
        UnknownNameError: the table has no such plan.
        PlanUnreadableError: the plan cannot be read.
    """
    check_plan_id(plan_id)
    plan = read_plan(table, plan_id, _ADVICE)
    if isinstance(plan, Missing):
        raise UnknownNameError.of("plan", plan_id, plan_ids(table))
    if isinstance(plan, Unreadable):
        raise PlanUnreadableError.of(plan_id, str(plan))
    if plan.table_id != table_id:
        raise InvalidArgumentError.of("plan", plan_id, "a plan of this table; this one was made for another one")
    return plan


def read_plan(table: ManagedTable, plan_id: str, advice: str) -> StoredPlan | Unreadable | Missing:
    """Reads a plan by the name of its file.

    Args:
        table: the table.
        plan_id: id of the plan, as ``plan_ids`` returns it or ``check_plan_id`` accepts it.
        advice: see ``state_files.read``.
    """
    return read(table, f"{PLANS_FOLDER}/{plan_id}{PLAN_ENDING}", partial(parse_plan, plan_id=plan_id), advice)


def writing_began(table: ManagedTable, plan_id: str, advice: str) -> int | Unreadable | Missing:
    """Reads when the writing of an unfinished plan began, in epoch milliseconds.

    Args:
        table: the table.
        plan_id: id of the plan, as ``unfinished_plan_ids`` returns it.
        advice: see ``state_files.read``.
    """
    file = f"{PLANS_FOLDER}/{plan_id}{WRITING_ENDING}"
    return read(table, file, partial(parse, build=lambda values: values.whole_number("created_at")), advice)


def parse_plan(text: str, plan_id: str) -> StoredPlan | Unreadable:
    """The plan in a file's text, or why there is none; total.

    Args:
        text: the text.
        plan_id: id in the name of the file. The folder of the plan is named by it, so that the text must have the same.
    """
    return parse(text, partial(_plan, plan_id=plan_id))


def _plan(values: Fields, plan_id: str) -> StoredPlan:
    if values.text("plan_id") != plan_id:
        raise FieldError(f"'plan_id' is not '{plan_id}', which names the file")
    groups = values.whole_number("groups", most=_MOST_GROUPS)
    first_groups = values.whole_numbers("first_groups", least=1, most=max(groups, 1))
    if sorted(set(first_groups)) != first_groups or (first_groups[:1] != [1]) != (groups == 0):
        raise FieldError("'first_groups' are not ascending numbers from 1 on")
    plan = StoredPlan(
        plan_id=plan_id,
        table_id=values.text("table_id"),
        version=values.whole_number("version"),
        created_at=values.whole_number("created_at"),
        max_file_bytes=values.whole_number("max_file_bytes", least=1),
        groups=groups,
        first_groups=tuple(first_groups),
        part_digests=tuple(values.strings("part_digests")),
    )
    if len(plan.part_digests) != len(first_groups) or values.text("digest") != _digest(_json(asdict(plan))):
        raise FieldError("'digest' does not match: the file was changed since it was stored")
    return plan


def parse_group(line: str) -> StoredGroup | Unreadable:
    """The group in a line, or why there is none; total."""
    return parse(line, _group)


def _group(values: Fields) -> StoredGroup:
    paths, vectors = values.strings("paths"), values.strings("vectors")
    run_ends = values.whole_numbers("run_ends", least=1, most=len(paths))
    if not paths or len(vectors) != len(paths) or len(set(paths)) != len(paths):
        raise FieldError("'paths' are not paths of different files, each with an entry in 'vectors'")
    if sorted(set(run_ends)) != run_ends or run_ends[-1:] != [len(paths)]:
        raise FieldError("'run_ends' are not ascending numbers up to that of the files")
    texts = {"reason": values.text("reason"), "partition": values.text_or_none("partition") or ""}
    lists = {"paths": tuple(paths), "vectors": tuple(vectors), "run_ends": tuple(run_ends)}
    of_text_or_list = {*texts, *lists}
    numbers = {f.name: values.whole_number(f.name) for f in fields(StoredGroup) if f.name not in of_text_or_list}
    return StoredGroup(**texts, **lists, **numbers)  # type: ignore[arg-type]


class PlanGroups:
    """The groups of a stored plan, read part by part; the last part is kept.

    Args:
        table: the table.
        plan: the plan.
    """

    def __init__(self, table: ManagedTable, plan: StoredPlan) -> None:
        self._table = table
        self._plan = plan
        self._part = -1
        self._groups: dict[int, StoredGroup] = {}

    def __getitem__(self, group_id: int) -> StoredGroup:
        """A group.

        Raises:
            PlanUnreadableError: it cannot be read.
        """
        part = bisect_right(self._plan.first_groups, group_id)
        if part != self._part:
            self._groups = {group.group_id: group for group in self._read(part)}
            self._part = part
        if group_id not in self._groups:
            raise PlanUnreadableError.of(self._plan.plan_id, f"group {group_id} is missing in {self._name(part)}")
        return self._groups[group_id]

    def __iter__(self) -> Iterator[StoredGroup]:
        """All groups in order."""
        for group_id in range(1, self._plan.groups + 1):
            yield self[group_id]

    def _name(self, part: int) -> str:
        return _part(self._plan, part)

    def _read(self, part: int) -> Iterator[StoredGroup]:
        try:
            text = self._table.read_state(self._name(part))
        except (Py4JError, PySparkException, OSError) as error:
            raise PlanUnreadableError.of(self._plan.plan_id, f"{self._name(part)}: {access_problem(error)}") from error
        if text is None:
            raise PlanUnreadableError.of(self._plan.plan_id, f"{self._name(part)} is missing")
        if _digest(text) != self._plan.part_digests[part - 1]:
            raise PlanUnreadableError.of(self._plan.plan_id, f"{self._name(part)} was changed since it was stored")
        for number, line in enumerate(text.split("\n"), start=1):
            group = parse_group(line)
            if isinstance(group, Unreadable):
                raise PlanUnreadableError.of(self._plan.plan_id, f"line {number} of {self._name(part)}: {group}")
            yield group
