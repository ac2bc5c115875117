"""The token of a server, which is created once and stored in a file that only its owner can read."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from catalog.errors import InvalidArgumentError, WriteDeniedError

DEFAULT_TOKEN_FILE = Path("~/.use-spark/token")
_BYTES = 32
_SHORTEST = 16


def read_or_make_token(file: Path) -> str:
    """Returns the token in a file, which is created if it is missing.

    Args:
        file: file with one line; ``~`` is the user's home.

    Raises:
        InvalidArgumentError: others can read or change the file, or it does not contain a token.
        WriteDeniedError: the file cannot be created or read.
    """
    place = _place(file)
    try:
        if not place.exists():
            _create(place)
        return _checked(place)
    except OSError as error:
        raise WriteDeniedError(f"token_file = '{file}' cannot be read or created: {error.strerror}.") from error


def _place(file: Path) -> Path:
    if "\0" in str(file):
        raise InvalidArgumentError.of("token_file", str(file), "a path without NUL")
    try:
        return file.expanduser().absolute()
    except RuntimeError as error:
        raise InvalidArgumentError.of("token_file", str(file), "a file of a user who has a home") from error


def _create(place: Path) -> None:
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # The file is complete and private from the start. If two servers start at the same time, the first token stays.
    draft = place.with_name(f".{place.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as out:
            out.write(secrets.token_urlsafe(_BYTES) + "\n")
        os.link(draft, place)
    except FileExistsError:
        pass
    finally:
        draft.unlink()


def _checked(place: Path) -> str:
    # Check the open file, so that it cannot be replaced between the check and the read.
    with place.open("rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise InvalidArgumentError.of("token_file", str(place), "a file")
        if status.st_mode & 0o077 or status.st_uid != os.geteuid():
            raise InvalidArgumentError.of(
                "token_file", str(place), f"a file that you own and that nobody else can read (chmod 600 {place})"
            )
        token = file.read(4096).decode("utf-8", errors="replace").strip()
    if len(token) < _SHORTEST or not token.isascii() or not token.isprintable() or any(c in token for c in " ;"):
        raise InvalidArgumentError.of(
            "token_file",
            str(place),
            f"a file with one line of at least {_SHORTEST} printable ASCII characters without spaces and semicolons; "
            "delete it to create a new one",
        )
    return token
