"""Who may read: the token, the cookie, the ``Host`` header, and the headers of all answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http.cookies import SimpleCookie
from urllib.parse import parse_qs, quote, urlencode

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sql_ext.dashboard.address import Access

SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
_TOKEN = "token"  # noqa: S105 - the name of a parameter
_SIGN_IN = "/sign-in"
_PUBLIC = "/static/"
_MOST_BODY = 4096
_FORM_SECONDS = 4.0
"""How long a form may take; less than a server that stops waits for its requests, which it would report as errors."""


class Guard:
    """Lets a request through to the application if it may read.

    Args:
        app: the application.
        access: who may read.
        sign_in: returns the page that asks for the token, with the problem of the last attempt.
    """

    def __init__(self, app: ASGIApp, access: Access, sign_in: Callable[[str], str]) -> None:
        self._app = app
        self._access = access
        self._sign_in = sign_in

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request."""
        if scope["type"] != "http":
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(SECURITY_HEADERS)
            await send(message)

        request = Request(scope, receive)
        answer = await self._answer(request)
        await (answer or self._app)(scope, receive, send_guarded)

    async def _answer(self, request: Request) -> Response | None:
        """The answer to a request that does not reach the application; None if it does."""
        if not self._access.is_host(request.headers.get("host", "")):
            return PlainTextResponse("The Host header is not accepted: use localhost or an address.", 403)
        is_from_elsewhere = request.headers.get("sec-fetch-site") == "cross-site"
        if is_from_elsewhere and request.headers.get("sec-fetch-mode") != "navigate":
            return PlainTextResponse("A page of another site may not read this page.", 403)
        path = str(request.scope["path"])
        if not request.scope["query_string"].isascii():
            # Browsers encode it; what is behind this guard fails on other bytes.
            return PlainTextResponse("The address is not accepted: its query has to be encoded.", 400)
        if path == _SIGN_IN and request.method == "POST":
            return await self._signed_in(request)
        if request.method not in ("GET", "HEAD"):
            return PlainTextResponse("Only GET and HEAD are accepted.", 405, headers={"Allow": "GET, HEAD"})
        if path.startswith(_PUBLIC) or self._access.token is None:
            return None
        token = request.query_params.get(_TOKEN)
        if token is not None and self._access.is_token(token):
            rest = [(name, value) for name, value in request.query_params.multi_items() if name != _TOKEN]
            # One slash: two would name another host.
            place = "/" + quote(path.lstrip("/")) + (f"?{urlencode(rest)}" if rest else "")
            return self._welcome(place)
        if token is None and self._access.is_cookie(_cookie(request, self._access.cookie_name)):
            return None
        return self._refused("" if token is None else "The token is not that of this dashboard.")

    async def _signed_in(self, request: Request) -> Response:
        try:
            body = await asyncio.wait_for(_form(request), _FORM_SECONDS)
        except asyncio.TimeoutError:
            return PlainTextResponse("The form did not arrive in time.", 408, headers={"Connection": "close"})
        except ClientDisconnect:
            return PlainTextResponse("The form is not complete.", 400)  # Nobody reads it.
        if len(body) > _MOST_BODY:
            return PlainTextResponse("The form is too large.", 413)
        fields = parse_qs(body.decode("utf-8", "replace"))
        if self._access.token is None or self._access.is_token(fields.get(_TOKEN, [""])[0].strip()):
            return self._welcome("/")
        return self._refused("The token is not that of this dashboard.")

    def _welcome(self, place: str) -> Response:
        answer = RedirectResponse(place, 303)
        answer.set_cookie(self._access.cookie_name, self._access.cookie, path="/", httponly=True, samesite="strict")
        return answer

    def _refused(self, problem: str) -> Response:
        return HTMLResponse(self._sign_in(problem), 401)


async def _form(request: Request) -> bytes:
    """The body of a request; of one that is too large, only the beginning."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MOST_BODY:
            break
    return body


def _cookie(request: Request, name: str) -> str:
    cookies: SimpleCookie = SimpleCookie()
    try:
        cookies.load(request.headers.get("cookie", ""))
    except Exception:  # noqa: BLE001 - whatever a client sends is no cookie of ours
        return ""
    return cookies[name].value if name in cookies else ""
