"""Groups of a consolidation plan as the documents that are stored, and back."""

from __future__ import annotations

from itertools import accumulate

from catalog.counted_nouns import agreeing, counted
from catalog.properties.index_properties import SAMPLE_FRACTIONS
from catalog.state.plan_files import StoredGroup
from catalog.table.snapshot import TableSnapshot
from procedures.groups.cutter import MAX_FILES_PER_GROUP
from procedures.groups.group import Concatenate, Expectation, FileRun, Group, InputFile
from procedures.selection.file_division import parts_of_file, rows_per_part
from procedures.selection.file_places import Scope, candidates, places
from procedures.selection.table_plan import NAME


def stored_group(group: Group) -> StoredGroup:
    """A group as it is stored: which files become which, and what is expected of it.

    Args:
        group: a group of a consolidation plan.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(group, Concatenate) or group.plan_group is None or group.expected is None:
        raise ValueError("Only groups of a consolidation plan are stored.")
    expected = group.expected
    vectors = {file.path: file.deletion_vector for file in group.files}
    paths = tuple(path for run in group.runs for path in run.paths)
    return StoredGroup(
        group_id=group.plan_group,
        reason=group.reason,
        revision_id=group.revision_id,
        partition=expected.partition,
        paths=paths,
        vectors=tuple(vectors[path] for path in paths),
        run_ends=tuple(accumulate(len(run.paths) for run in group.runs)),
        bytes=group.bytes,
        files_out=expected.files,
        depth_before=expected.depth_before,
        depth_after=expected.depth_after,
    )


def group_of(snapshot: TableSnapshot, stored: StoredGroup, max_file_bytes: int) -> Concatenate | str:
    """The group that was stored, with its files as the newest version has them.

    Nothing but the names and deletion vectors of the files is taken from the plan, which anybody may have edited: their
    facts are looked up.

    Args:
        snapshot: the newest version.
        stored: the group.
        max_file_bytes: the size that files should have.

    Returns:
        The group, or why its files cannot be rewritten together any more.
    """
    named = Scope(None, True, None, None, isolated=True)
    files, _ = candidates(snapshot.only_paths(stored.paths), named)
    positions = {path: position for position, path in enumerate(files.path.tolist())}
    vectors = dict(zip(stored.paths, stored.vectors, strict=True))
    gone = sum(path not in positions for path in stored.paths)
    changed = sum(files.deletion_vector[at] != vectors[path] for path, at in positions.items())
    if gone or changed:
        return (
            f"of {counted(len(stored.paths), 'file')} {gone} {agreeing(gone, 'is', 'are')} gone and {changed} "
            f"{agreeing(changed, 'has', 'have')} other deleted rows"
        )
    of_group = [place for place, _ in places(files, SAMPLE_FRACTIONS.value(snapshot.settings))]
    if len(of_group) != 1 or of_group[0].revision_id != stored.revision_id:
        return "its files are not of one partition, revision and band"
    files_out, rows_per_file = len(stored.runs), None
    if len(stored.paths) == 1:
        rows, size = int(files.rows[0]), int(files.size[0])
        files_out = min(stored.files_out, parts_of_file(size, rows, max_file_bytes), MAX_FILES_PER_GROUP)
        if files_out < 2:
            return "its file cannot be divided"
        rows_per_file = rows_per_part(rows, files_out)
    return Concatenate(
        NAME,
        stored.revision_id,
        stored.reason,
        InputFile.of(files, [positions[path] for path in stored.paths]),
        runs=tuple(FileRun.of(files, [positions[path] for path in run]) for run in stored.runs),
        rows_per_file=rows_per_file,
        plan_group=stored.group_id,
        expected=Expectation(stored.partition, files_out, stored.depth_before, stored.depth_after),
    )
