"""Requests to the dashboard and the metrics, as anybody may send them who reaches the port."""

from __future__ import annotations

import asyncio
import tempfile
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from fake_clock import FakeClock
from fleet_fakes import EVIL, NOW, fleet_of, table_of

from inputs.cases import Reader
from inputs.mutations import any_text, changed_bytes, odd_text, random_bytes
from sql_ext.dashboard.address import Access, DashboardAddress
from sql_ext.dashboard.guard import SECURITY_HEADERS
from sql_ext.dashboard.pages import Pages
from sql_ext.dashboard.web_application import web_application
from sql_ext.server.settings import ServerSettings
from sql_ext.server.token import read_or_make_token

TOKEN = "a-token-of-the-tests"
_PATHS = (
    "/",
    "/fragment",
    "/table",
    "/static/style.css",
    "/sign-in",
    "/static/../guard.py",
    "//evil.example/",
    "/%5Cevil",
)
_HOSTS = ("127.0.0.1:8765", "localhost", "[::1]:8765", "evil.example", "127.0.0.1:]", "[", "127.0.0.1:abc", "")
_QUERIES = (
    "",
    "name=x",
    f"token={TOKEN}",
    "order=cost&direction=up&page=2",
    "page=１",
    "plan=1&name=t",
    "search=%ff&state=",
)


class _Tables:
    """The data of one table of the fleet."""

    def get(self, name: str, with_plan: bool, seconds: float) -> Any:
        return table_of(name)


@cache
def _application() -> tuple[Any, Access]:
    access = Access(TOKEN)
    data = fleet_of(60)
    return web_application(lambda: data, _Tables(), Pages(10), access, FakeClock(NOW)), access


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _request(chance: Random) -> dict[str, Any]:
    _, access = _application()
    cookie = f"{access.cookie_name}={access.cookie}"
    headers = [(b"host", _encoded(any_text(chance, *_HOSTS)))] if chance.random() < 0.97 else []
    if chance.random() < 0.6:
        headers.append(
            (b"cookie", _encoded(cookie if chance.random() < 0.7 else any_text(chance, cookie, 'a="', "a=b; c")))
        )
    for name in ("sec-fetch-site", "sec-fetch-mode", "range", "if-none-match", "if-modified-since", "content-type"):
        if chance.random() < 0.15:
            text = any_text(
                chance, "cross-site", "navigate", "bytes=0-5", "bytes=5-1", 'W/"x"', "Thu, 26 Nov 2026 19:00:00 GMT"
            )
            headers.append((name.encode(), _encoded(text)))
    path = any_text(chance, *_PATHS) if chance.random() < 0.5 else chance.choice(_PATHS)
    query = any_text(chance, *_QUERIES, f"name={EVIL}")
    body = random_bytes(chance, 5_000) if chance.random() < 0.2 else _encoded(f"token={any_text(chance, TOKEN)}")
    return {
        "method": chance.choice(("GET", "GET", "GET", "HEAD", "POST", "PUT", "OPTIONS", "\u00e9")), "path": path,
        "query_string": _encoded(query), "headers": headers, "body": body,
    }  # fmt: skip


def _answer(request: dict[str, Any]) -> None:
    app, access = _application()
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http", "root_path": "",
        "raw_path": _encoded(request["path"]), "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8765),
        **{key: value for key, value in request.items() if key != "body"},
    }  # fmt: skip
    started: list[dict[str, Any]] = []
    text = bytearray()
    asked: list[int] = []

    async def receive() -> dict[str, Any]:
        if asked:
            return {"type": "http.disconnect"}
        asked.append(1)
        return {"type": "http.request", "body": request["body"], "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            started.append(message)
        else:
            text.extend(message.get("body", b""))

    asyncio.run(app(scope, receive, send))
    (start,) = started
    assert 200 <= start["status"] < 500, start["status"]
    headers = {name.decode("latin-1").lower(): value for name, value in start["headers"]}
    assert all(name.lower() in headers for name in SECURITY_HEADERS)
    if not _may_read(request, access):
        assert b"spark_catalog" not in text, bytes(text[:500])
        assert b"set-cookie" not in headers


def _may_read(request: dict[str, Any], access: Access) -> bool:
    """Whether the token or the cookie is anywhere in a request."""
    sent = b"".join([request["query_string"], request["body"], *(value for _, value in request["headers"])])
    return TOKEN.encode() in sent or access.cookie.encode() in sent


# --------------------------------------------------------------------------------------------------- files and settings


def _token(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "token")
        file.write_bytes(data)
        file.chmod(0o600)
        token = read_or_make_token(file)
        assert len(token) >= 16
        assert token.isascii()


def _server(conf: dict[str, str]) -> None:
    environment = {key: text for key, text in conf.items() if not key.startswith("spark")}
    ServerSettings(port=0, auth=conf.get("auth", "token")).check(conf, environment)


def _conf(chance: Random) -> dict[str, str]:
    names = (
        "spark.hive.server2.thrift.port",
        "spark.connect.grpc.binding.port",
        "HIVE_SERVER2_THRIFT_PORT",
        "spark.x",
        odd_text(chance),
    )
    found = {any_text(chance, *names): odd_text(chance) for _ in range(chance.randrange(3))}
    return found | ({"auth": odd_text(chance)} if chance.random() < 0.3 else {})


def _address(chance: Random) -> DashboardAddress:
    file = None if chance.random() < 0.5 else Path(odd_text(chance).replace("\0", ""))
    return DashboardAddress(0, "127.0.0.1", any_text(chance, "token", "none"), file, chance.choice(("", "dashboard-")))


def readers() -> list[Reader]:
    """The readers of requests, tokens and addresses."""
    sound = b"abcdefghijklmnopqrstuvwxyz0123456789-_\n"
    return [
        Reader("web: requests to the dashboard", _request, _answer, share=12),
        Reader("web: the file of a token", lambda chance: changed_bytes(chance, sound), _token, share=1),
        Reader("web: settings of a server", _conf, _server, share=2),
        Reader("web: address of the dashboard", _address, lambda address: address.check(), share=1),
    ]
