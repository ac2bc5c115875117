"""The server on a real port."""

import http.client
import socket
from pathlib import Path

import pytest
from fake_clock import FakeClock
from fleet_fakes import NOW, fleet_of
from hatchling.builders.wheel import WheelBuilder

from sql_ext.dashboard import connections
from sql_ext.dashboard.address import DashboardAddress, open_port
from sql_ext.dashboard.pages import Pages
from sql_ext.dashboard.server import served
from sql_ext.dashboard.web_application import web_application


@pytest.fixture
def port():
    data = fleet_of(60)
    with open_port(DashboardAddress(0)) as port:
        web = web_application(lambda: data, None, Pages(10), port.access, FakeClock(NOW))
        with served(web, port):
            yield port
    # It is closed with the block.
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port.access.port), 5)


def _get(port, path, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port.access.port, timeout=20)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()
    finally:
        connection.close()


def test_the_printed_address_opens_the_page(port, caplog):
    status, headers, _ = _get(port, port.url.removeprefix(f"http://127.0.0.1:{port.access.port}"))
    assert (status, headers["location"]) == (303, "/")
    cookie = headers["set-cookie"].partition(";")[0]
    status, headers, text = _get(port, "/", Cookie=cookie)
    assert (status, headers["server"]) == (200, None)
    assert "Tables 1 to 50 of 60" in text
    for file in ("style.css", "refresh.js", "icon.svg"):
        assert _get(port, f"/static/{file}")[0] == 200
    for file in ("../pages.py", "%2e%2e/pages.py", "..%2fpages.py"):
        assert _get(port, f"/static/{file}")[0] in (401, 404)
    assert _get(port, "/")[0] == 401
    assert port.access.token not in caplog.text


def test_garbage_does_not_stop_it(port):
    for text in (b"\x16\x03\x01garbage\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET /" + b"a" * 100_000 + b"\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", port.access.port), 20) as connection:
            connection.sendall(text)
            try:
                assert b" 4" in connection.recv(100)[:12]
            except ConnectionResetError:
                pass
    assert _get(port, "/")[0] == 401


_FORM_WITHOUT_BODY = b"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"


@pytest.mark.parametrize("beginning", [b"", _FORM_WITHOUT_BODY])
def test_a_new_connection_takes_the_place_of_a_silent_one(port, monkeypatch, caplog, beginning):
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 3)
    silent = [socket.create_connection(("127.0.0.1", port.access.port), 20) for _ in range(5)]
    assert [connection.recv(1) for connection in silent[:2]] == [b""] * 2
    for connection in silent[2:]:
        connection.sendall(beginning)
    assert _get(port, "/")[0] == 401
    assert silent[2].recv(1) == b""
    for connection in silent[3:]:
        connection.setblocking(False)
        with pytest.raises(BlockingIOError):
            connection.recv(1)
    for connection in silent:
        connection.close()
    # By the time of another answer, the server has noticed that they are gone.
    assert _get(port, "/")[0] == 401
    assert caplog.text == ""


def test_templates_and_static_files_are_in_the_wheel():
    root = Path(__file__).resolve().parents[3]
    packed = {file.distribution_path for file in WheelBuilder(str(root)).recurse_included_files()}
    folder = root / "sql_ext" / "dashboard"
    files = {str(file.relative_to(root)) for part in ("templates", "static") for file in (folder / part).iterdir()}
    assert len(files) == 10
    assert files <= packed
