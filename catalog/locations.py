"""Spellings of locations: the one by which this process knows a table, and paths in URLs of local files."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable
from urllib.parse import unquote

# State of ours that belongs to a table and not to one of its versions; Delta's vacuum leaves such folders alone.
STATE_FOLDER = "_use"
_URI = re.compile(r"(?:(?P<scheme>[a-zA-Z][a-zA-Z0-9+.-]*):)?(?://(?P<authority>[^/]*))?(?P<path>.*)", re.DOTALL)
# Servers whose names have no case, and whose port may be left out.
_DEFAULT_PORTS = {"hdfs": ":8020"}


def place_of(location: str, default_file_system: Callable[[], str]) -> str:
    """The location with scheme and authority, without doubled slashes, dots, a trailing slash or local links.

    Nothing is asked of a remote file system, so that a server that is away keeps nobody waiting.

    Args:
        location: a URI or path, decoded as Hadoop prints it.
        default_file_system: gives the URI of the default file system; called where the location leaves it out.

    Returns:
        A URI; equal for all spellings of one place, as far as the spelling and the local file system tell.
    """
    scheme, authority, path = _parts(location)
    if not scheme or (scheme != "file" and not authority):
        default_scheme, default_authority, _ = _parts(default_file_system())
        if not scheme or scheme == default_scheme:
            scheme, authority = default_scheme, default_authority
    path = posixpath.normpath(f"/{path.lstrip('/')}")
    if scheme == "file":
        return f"file:{_without_links(path)}"
    if scheme in _DEFAULT_PORTS:
        authority = authority.lower().removesuffix(_DEFAULT_PORTS[scheme])
    return f"{scheme}://{authority}{path}" if authority else f"{scheme}:{path}"


def local_path(location: str) -> str | None:
    """The path in a location such as ``file:/a b``, as Spark reads it: ``%20`` stands for itself.

    Returns:
        None for paths, and for locations of other hosts and schemes.
    """
    scheme, authority, path = _parts(location)
    return path if scheme == "file" and authority in ("", "localhost") else None


def path_of_file_url(location: str) -> str | None:
    """The decoded path of a URL such as ``file:/a%20b``; None for paths, and for URLs of other hosts and schemes."""
    path = local_path(location)
    return None if path is None else unquote(path)


def _parts(location: str) -> tuple[str, str, str]:
    uri = _URI.fullmatch(location)
    if uri is None:
        return "", "", location
    return (uri["scheme"] or "").lower(), uri["authority"] or "", uri["path"]


def _without_links(path: str) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return path  # no path of this system
