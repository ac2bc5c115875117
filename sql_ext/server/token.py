"""The token of a server: made once, kept in a file that only its owner reads."""

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
    """Returns the token in the file; where there is no file, one is made.

    Args:
        file: of one line; ``~`` is the user's home.

    Raises:
        InvalidArgumentError: others may read or change the file, or what it holds is no token.
        WriteDeniedError: it cannot be made or read.
    """
    place = file.expanduser().absolute()
    try:
        if not place.exists():
            _make(place)
        return _checked(place)
    except OSError as error:
        raise WriteDeniedError(f"token_file = '{file}' cannot be read or made: {error.strerror}.") from error


def _make(place: Path) -> None:
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Whole and private from its first moment on, whoever starts at the same time: the first one's token stays.
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
    # Asked of the open file, so that it cannot be exchanged between the look and the reading.
    with place.open("rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise InvalidArgumentError.of("token_file", str(place), "a file")
        if found.st_mode & 0o077 or found.st_uid != os.geteuid():
            raise InvalidArgumentError.of(
                "token_file", str(place), f"a file of your own that nobody else may read (chmod 600 {place})"
            )
        token = file.read(4096).decode("utf-8", errors="replace").strip()
    if len(token) < _SHORTEST or not token.isascii() or not token.isprintable() or any(c in token for c in " ;"):
        raise InvalidArgumentError.of(
            "token_file",
            str(place),
            f"a file with one line of at least {_SHORTEST} printable ASCII characters without spaces and semicolons; "
            "remove it, and a new one is made",
        )
    return token
