"""Settings of a server, which are checked before it starts."""

from __future__ import annotations

import errno
import ipaddress
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from catalog.errors import InvalidArgumentError, UseError
from sql_ext.server.token import DEFAULT_TOKEN_FILE

TOKEN, NONE = "token", "none"
AUTHENTICATIONS = (TOKEN, NONE)
DEFAULT_PORT = 10000

# Settings that would contradict an option or show a token in the process list, with the option that replaces them.
# Spark treats ``spark.hive.`` as ``spark.hadoop.hive.``.
_REPLACED_BY_OPTION = {
    "spark.hadoop.hive.server2.thrift.port": "--port",
    "spark.hadoop.hive.server2.thrift.bind.host": "--host",
    "spark.hadoop.hive.server2.authentication": "--auth",
    "spark.hadoop.hive.server2.custom.authentication.class": "--auth",
    "spark.hadoop.hive.server2.transport.mode": "the binary transport, the only one supported",
    "spark.connect.grpc.binding.address": "--host",
    "spark.connect.grpc.binding.port": "--connect-port",
    "spark.connect.authenticate.token": "--token-file",
}
# Hive reads these variables before any setting.
_ENVIRONMENT = {
    "HIVE_SERVER2_THRIFT_PORT": "--port",
    "HIVE_SERVER2_THRIFT_BIND_HOST": "--host",
    "HIVE_SERVER2_TRANSPORT_MODE": "the binary transport, the only one supported",
    "SPARK_CONNECT_AUTHENTICATE_TOKEN": "--token-file",
}


@dataclass(frozen=True)
class ServerSettings:
    """Addresses and authentication of a server.

    Attributes:
        host: name or address to listen on.
        port: port of the JDBC server; 0 = a free one.
        connect_port: port of Spark Connect; 0 = a free one, None = not served.
        auth: one of ``AUTHENTICATIONS``.
        token_file: file with the token, if ``auth`` is ``token``.
    """

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    connect_port: int | None = None
    auth: str = TOKEN
    token_file: Path = DEFAULT_TOKEN_FILE

    def check(self, conf: Mapping[str, str], environment: Mapping[str, str] = os.environ) -> None:
        """Rejects settings that are invalid or unsafe. Opens each port for a moment to check that it is free.

        Args:
            conf: settings of Spark given to the command.
            environment: variables of this process.

        Raises:
            InvalidArgumentError: a value is invalid, or a setting contradicts an option.
            UseError: a port is in use.
        """
        if self.auth not in AUTHENTICATIONS:
            raise InvalidArgumentError.of("auth", self.auth, f"one of {', '.join(AUTHENTICATIONS)}")
        for key in conf:
            if (instead := _REPLACED_BY_OPTION.get(re.sub(r"^spark\.hive\.", "spark.hadoop.hive.", key))) is not None:
                # Its value may be a secret.
                raise InvalidArgumentError(f"conf = {key} is not accepted: {instead} replaces it.")
        for name, instead in _ENVIRONMENT.items():
            if name in environment:
                raise InvalidArgumentError(
                    f"{name} in the environment is not accepted: unset it; {instead} replaces it."
                )
        if self.connect_port is not None and self.connect_port == self.port != 0:
            raise InvalidArgumentError.of("connect_port", self.connect_port, "a port different from the JDBC port")
        for name, port in (("port", self.port), ("connect_port", self.connect_port)):
            if port is not None:
                self._check_port(name, port)

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the host."""
        return all(ipaddress.ip_address(address.partition("%")[0]).is_loopback for address in self._addresses())

    @property
    def warning(self) -> str | None:
        """The warning about these settings, if any."""
        if self.auth == NONE:
            reach = "this machine" if self.loopback else f"the network that reaches {self.host}"
            return (
                f"--auth none: anyone on {reach} can read, change and drop every table, and run programs as "
                f"{_user()} through Spark SQL"
            )
        if not self.loopback:
            return (
                f"{self.host} is reachable from the network: token and data travel unencrypted, unless the server or a "
                "proxy uses TLS (docs/servers.md)"
            )
        return None

    def _addresses(self) -> set[str]:
        try:
            addresses = socket.getaddrinfo(self.host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        except (OSError, UnicodeError):
            raise InvalidArgumentError.of("host", self.host, "a name or an address of this machine") from None
        return {str(address[4][0]) for address in addresses}

    def _check_port(self, name: str, port: int) -> None:
        for address in sorted(self._addresses()):
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            with socket.socket(family, socket.SOCK_STREAM) as trial:
                # As the servers do: a port that was just closed counts as free.
                trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    trial.bind((address.partition("%")[0], port))
                except PermissionError:
                    raise InvalidArgumentError.of(
                        name, port, "a port that you may use, such as 1024 or above"
                    ) from None
                except OSError as error:
                    if error.errno == errno.EADDRNOTAVAIL:
                        raise InvalidArgumentError.of("host", self.host, "an address of this machine") from None
                    raise UseError(
                        f"{name} = {port} on {self.host} is in use: use another port, or 0 for a free one.",
                        code="USE_PORT_IN_USE",
                        sql_state="55006",
                    ) from None


def _user() -> str:
    import getpass

    try:
        return f"the user {getpass.getuser()}"
    except (KeyError, OSError):
        return "the server's user"
