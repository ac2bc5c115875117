"""Finding data files of a table by the ways in which people write their paths."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import unquote

from pyspark.sql import functions as F

from catalog.errors import UnknownNameError
from catalog.table.snapshot import TableSnapshot

_FILE_SCHEME = re.compile(r"^file:/+")
_NAMES_SHOWN = 5


def spellings(name: str, location: str) -> tuple[str, ...]:
    """What the decoded path of a file may be that a user calls ``name``; as given first.

    Args:
        name: as in the log (URL-encoded), plain, or absolute below the table.
        location: the table's root, as a URI or path.
    """
    roots = [_plain(root).rstrip("/") + "/" for root in (location, unquote(location))]
    forms = [_plain(name), _plain(unquote(name))]
    below = [form[len(root) :] for form in forms for root in roots if form.startswith(root)]
    return tuple(dict.fromkeys([*forms, *below]))


def _plain(path: str) -> str:
    return _FILE_SCHEME.sub("/", path)


def find_files(snapshot: TableSnapshot, names: Sequence[str]) -> tuple[str, ...]:
    """The live files that some names stand for, as paths of the log.

    Args:
        snapshot: the table.
        names: see ``spellings``.

    Raises:
        UnknownNameError: a name that no live file has.
    """
    meant = {name: spellings(name, snapshot.location) for name in names}
    # "+" is a plus sign in a path.
    decoded = F.try_url_decode(F.replace("path", F.lit("+"), F.lit("%2B")))
    decoded = F.regexp_replace(decoded, "^file:/+", "/")
    wanted = sorted({form for forms in meant.values() for form in forms})
    rows = (
        snapshot.log_files.select("path", decoded.alias("decoded"))
        .where(F.col("path").isin(list(meant)) | F.col("decoded").isin(wanted))
        .collect()
    )
    in_log = {row.path for row in rows}
    by_decoded = {row.decoded: row.path for row in rows}
    path_by_name: dict[str, str | None] = {}
    for name, forms in meant.items():
        # The spelling of the log wins over a file whose plain name looks like it.
        known = [by_decoded[form] for form in forms if form in by_decoded]
        path_by_name[name] = name if name in in_log else next(iter(known), None)
    unknown = [name for name, path in path_by_name.items() if path is None]
    if unknown:
        files = snapshot.log_files.select("path").orderBy("path").limit(_NAMES_SHOWN + 1).collect()
        shown = [row.path for row in files[:_NAMES_SHOWN]]
        raise UnknownNameError.of("file", unknown[0], shown, others=len(files) > len(shown))
    return tuple(dict.fromkeys(path for path in path_by_name.values() if path is not None))
