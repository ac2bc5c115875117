"""A browser for an ASGI application: it keeps cookies, and opens no port."""

import asyncio
from dataclasses import dataclass
from http.cookies import SimpleCookie
from urllib.parse import quote, urlencode, urlsplit


@dataclass(frozen=True)
class Answer:
    status_code: int
    headers: dict
    text: str


class AsgiClient:
    """Sends requests one after the other.

    Args:
        app: the application.
        host: value of the ``Host`` header.
    """

    def __init__(self, app, host="127.0.0.1:8765"):
        self._app = app
        self._host = host
        self._cookies = {}

    def get(self, place, params=None, headers=None):
        return self.request("GET", place, params, headers)

    def post(self, place, data=None, content=b"", is_complete=True):
        return self.request(
            "POST", place, content=urlencode(data).encode() if data else content, is_complete=is_complete
        )

    def request(self, method, place, params=None, headers=None, content=b"", raw_query=None, is_complete=True):
        path, _, query = place.partition("?")
        query = urlencode(params) if params else query
        cookie = "; ".join(f"{name}={value}" for name, value in self._cookies.items())
        sent = {"host": self._host, **({"cookie": cookie} if cookie else {}), **(headers or {})}
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": urlsplit(f"http://h{path}").path.replace("%5C", "\\"),
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": quote(query, safe="%&=+/?:").encode() if raw_query is None else raw_query,
            "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8765),
        }
        answer = asyncio.run(self._answer(scope, content, is_complete))
        for name, value in SimpleCookie(answer.headers.get("set-cookie", "")).items():
            self._cookies[name] = value.value
        return answer

    async def _answer(self, scope, content, is_complete):
        parts, sent, start = [], [], {}

        async def receive():
            if sent:
                await asyncio.Event().wait()  # the browser stays
            sent.append(True)
            return {"type": "http.request", "body": content, "more_body": not is_complete}

        async def send(message):
            if message["type"] == "http.response.start":
                start.update(message)
            else:
                parts.append(message.get("body", b""))

        await self._app(scope, receive, send)
        headers = {name.decode(): value.decode() for name, value in start["headers"]}
        return Answer(start["status"], headers, b"".join(parts).decode())
