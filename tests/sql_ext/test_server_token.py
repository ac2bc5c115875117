"""The file of a server's token; no Spark."""

import os
import stat
import threading
from pathlib import Path

import pytest

from catalog.errors import InvalidArgumentError, WriteDeniedError
from sql_ext.server.token import read_or_make_token

TOKEN = "0123456789abcdef"


@pytest.fixture
def token_file(tmp_path):
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    file.chmod(0o600)
    return file


def test_it_is_made_private_and_stays(tmp_path):
    file = tmp_path / "new" / "folder" / "token"
    token = read_or_make_token(file)
    assert len(token) >= 40
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert read_or_make_token(file) == token
    assert list(file.parent.iterdir()) == [file]


def test_two_files_have_two_tokens(tmp_path):
    assert read_or_make_token(tmp_path / "a") != read_or_make_token(tmp_path / "b")


def test_the_home_is_found(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert read_or_make_token(type(tmp_path)("~/.use-spark/token"))
    assert (tmp_path / ".use-spark" / "token").exists()


@pytest.mark.parametrize(
    ("name", "accepted"), [("~no-such-user/token", "a file of a user who has a home"), ("a\0b", "a path without NUL")]
)
def test_a_path_that_names_no_file_is_refused(name, accepted):
    with pytest.raises(InvalidArgumentError, match=f"token_file = '.*' is not accepted: {accepted}"):
        read_or_make_token(Path(name))


def test_servers_that_start_at_once_have_one_token(tmp_path):
    found = []
    threads = [threading.Thread(target=lambda: found.append(read_or_make_token(tmp_path / "token"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(found) == 8
    assert len(set(found)) == 1


def test_what_the_owner_wrote_is_taken(token_file):
    assert read_or_make_token(token_file) == TOKEN


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o601, 0o644])
def test_a_file_that_others_may_read_is_refused(token_file, mode):
    token_file.chmod(mode)
    with pytest.raises(InvalidArgumentError, match="nobody else can read") as refused:
        read_or_make_token(token_file)
    assert TOKEN not in refused.value.message


def test_the_file_of_somebody_else_is_refused(token_file, monkeypatch):
    someone = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: someone)
    with pytest.raises(InvalidArgumentError, match="a file that you own"):
        read_or_make_token(token_file)


@pytest.mark.parametrize(
    "text",
    ["", "\n", "short", "0123456789abcde", "0123456789 abcdef", "0123456789;abcdef", "0123456789\nabcdef", "é" * 20],
    ids=["empty", "blank", "short", "one too few", "space", "semicolon", "two lines", "not ascii"],
)
def test_what_is_no_token_is_refused(token_file, text):
    token_file.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidArgumentError, match=r"token_file = .* at least 16 printable") as refused:
        read_or_make_token(token_file)
    assert len(text) < 16 or text not in refused.value.message


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(InvalidArgumentError, match="a file"):
        read_or_make_token(type(tmp_path)("/dev/null"))
    (tmp_path / "file").touch()
    with pytest.raises(WriteDeniedError, match="cannot be read or created"):
        read_or_make_token(tmp_path / "file" / "token")
    (tmp_path / "nowhere").symlink_to(tmp_path / "missing")
    with pytest.raises(WriteDeniedError, match="cannot be read or created"):
        read_or_make_token(tmp_path / "nowhere")
