"""Where the dashboard listens, and who may read it."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from catalog.errors import InvalidArgumentError, MissingPackageError
from sql_ext.server.listening import host_in_url, port_refusal
from sql_ext.server.settings import AUTHENTICATIONS, NONE, TOKEN
from sql_ext.server.token import read_or_make_token

DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 8765
_TOKEN_BYTES = 32
_COOKIE_OF_TOKEN = b"cookie of the dashboard"


@dataclass(frozen=True)
class DashboardAddress:
    """The address of the dashboard, and its authentication.

    Attributes:
        port: port; 0 is a free one.
        host: name or address to listen on.
        auth: ``token`` or ``none``.
        token_file: file with the token, which is created if it is missing; None = a new token for this process.
        prefix: what the names of the options begin with, for errors.
    """

    port: int = DEFAULT_PORT
    host: str = DEFAULT_HOST
    auth: str = TOKEN
    token_file: Path | None = None
    prefix: str = ""

    def check(self) -> None:
        """Checks what can be checked without opening the port.

        Raises:
            MissingPackageError: a package of the extra ``dashboard`` is not installed.
            InvalidArgumentError: two options contradict each other.
        """
        for package in ("starlette", "uvicorn", "jinja2"):
            if not _is_installed(package):
                raise MissingPackageError.of(package, "dashboard")
        if self.auth not in AUTHENTICATIONS:
            raise InvalidArgumentError.of(f"{self.prefix}auth", self.auth, f"one of {', '.join(AUTHENTICATIONS)}")
        if self.auth == NONE and self.token_file is not None:
            name = f"{self.prefix}token-file"
            raise InvalidArgumentError.of(name, str(self.token_file), f"nothing together with {self.prefix}auth = none")

    @property
    def warning(self) -> str | None:
        """The warning about these options; None if there is none."""
        is_local = _is_loopback(self.host)
        if self.auth == NONE:
            reach = "this machine" if is_local else f"the network that reaches {self.host}"
            return (
                f"--{self.prefix}auth none: anyone on {reach} can see names of tables and columns, their errors, and "
                "how they are read"
            )
        if not is_local:
            return (
                f"{self.host} is reachable from the network, and the dashboard does not encrypt: the token can be read"
            )
        return None


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):  # a test hides it
        return False


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass(frozen=True)
class Access:
    """Who may read the dashboard.

    Attributes:
        token: the token; None = everyone may.
        host: the host that it listens on.
        port: the port.
    """

    token: str | None
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT

    @property
    def cookie_name(self) -> str:
        """Name of the cookie; browsers send the cookies of a host to all of its ports."""
        return f"use-dashboard-{self.port}"

    @property
    def cookie(self) -> str:
        """Value of the cookie of a signed-in browser, from which nobody learns the token."""
        return hmac.new((self.token or "").encode(), _COOKIE_OF_TOKEN, hashlib.sha256).hexdigest()

    def is_token(self, text: str) -> bool:
        """Whether a text is the token; takes the same time for each wrong text of its length."""
        return self.token is not None and hmac.compare_digest(text.encode(), self.token.encode())

    def is_cookie(self, text: str) -> bool:
        """Whether a text is the value of the cookie; takes the same time for each wrong text of its length."""
        return self.token is None or hmac.compare_digest(text.encode(), self.cookie.encode())

    def is_host(self, header: str) -> bool:
        """Whether a ``Host`` header is that of this server.

        A page of another site whose name was changed to lead here sends the name of its site.

        Args:
            header: value of the header, with or without a port.
        """
        name = header.rpartition("]")[0].removeprefix("[") if header.startswith("[") else header.partition(":")[0]
        if name.lower() in ("localhost", self.host.lower()):
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


@dataclass(frozen=True)
class OpenPort:
    """A port that is open: connections wait until somebody serves them.

    Attributes:
        socket: listens on the address.
        access: who may read.
        url: URL of the page, with the token unless it is in a file.
        notes: lines for the person who starts it.
    """

    socket: socket.socket
    access: Access
    url: str
    notes: tuple[str, ...]


@contextmanager
def open_port(address: DashboardAddress) -> Iterator[OpenPort]:
    """Opens the port for the block, before anything that takes long.

    Args:
        address: where, and for whom.

    Raises:
        MissingPackageError: a package of the extra ``dashboard`` is not installed.
        InvalidArgumentError: an option is invalid, or the file of the token cannot be trusted.
        UseError: the port is in use (``USE_PORT_IN_USE``).
    """
    address.check()
    notes = [f"warning: {address.warning}"] if address.warning else []
    token = None
    if address.auth == TOKEN and address.token_file is not None:
        token = read_or_make_token(address.token_file)
        notes.append(f"the token of the dashboard is in {address.token_file.expanduser().absolute()}")
    elif address.auth == TOKEN:
        token = secrets.token_urlsafe(_TOKEN_BYTES)
    bound = _bound(address)
    try:
        port = int(bound.getsockname()[1])
        url = f"http://{host_in_url(address.host)}:{port}/"
        if token is not None and address.token_file is None:
            url += f"?token={token}"
        yield OpenPort(bound, Access(token, address.host, port), url, tuple(notes))
    finally:
        bound.close()


def _bound(address: DashboardAddress) -> socket.socket:
    names = f"{address.prefix}port", f"{address.prefix}host"
    try:
        family, kind, _, _, place = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError):
        raise InvalidArgumentError.of(names[1], address.host, "a name or an address of this machine") from None
    opened = socket.socket(family, kind)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(place)
        opened.listen()
    except OSError as error:
        opened.close()
        raise port_refusal(names, address.port, address.host, error) from error
    return opened
