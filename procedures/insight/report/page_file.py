"""The file of a page: a new one, or one that has a page already."""

from __future__ import annotations

from pathlib import Path

from catalog.errors import InvalidArgumentError, WriteDeniedError

_BEGINNING = b"<!doctype html>"


def check_page_file(parameter: str, file: str, place: str) -> None:
    """Refuses what is no file, and any file other than a page.

    Args:
        parameter: that names the file.
        file: its path.
        place: what is accepted, such as ``a file on the driver``.

    Raises:
        InvalidArgumentError: the file is refused.
    """
    path = Path(file)
    try:
        is_place = bool(file.strip()) and "\0" not in file and not path.is_dir() and path.absolute().parent.is_dir()
        is_other = is_place and path.exists() and not is_page(path)
    except OSError:  # Such as a name that is too long.
        is_place = is_other = False
    if not is_place:
        raise InvalidArgumentError.of(parameter, file, f"{place}, in a folder that exists")
    if is_other:
        raise InvalidArgumentError.of(parameter, file, "a new file, or an HTML page to replace; this is another file")


def is_page(path: Path) -> bool:
    """Returns whether a file is a page, or empty."""
    try:
        with path.open("rb") as file:
            return file.read(len(_BEGINNING)).lower() in (_BEGINNING, b"")
    except OSError:
        return False


def write_page(path: Path, text: str) -> None:
    """Writes a page.

    Raises:
        WriteDeniedError: the file cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise WriteDeniedError(f"{path} cannot be written: {error.strerror or error}.") from error
