"""Another process of this machine, as the listeners of a driver see it: plain sockets, no client library."""

import socket

SECONDS = 20
# The commands of Py4J's protocol: calls, garbage collection, fields, members, reflection, shutdown, authentication.
COMMANDS = [
    "c\n{id}\n_secret\ne\n",
    "c\n{id}\n__class__\ne\n",
    "c\n{id}\n__getattribute__\ns_secret\ne\n",
    "c\n{id}\n__init__\nsmine\ne\n",
    "c\n{id}\n__setattr__\ns_secret\nsmine\ne\n",
    "c\n{id}\nhandle\nscall\nn\nn\ne\n",
    "c\n{id}\nhandle\nsmine\nscall\nn\nn\ne\n",
    "g\n{id}\ne\n",
    "m\nd\n{id}\ne\n",
    "f\ng\n{id}\n_secret\ne\n",
    "d\nf\n{id}\ne\n",
    "r\nu\njava.lang.System\nrj\ne\n",
    "c\nt\ngetattr\ne\n",
    "c\nGATEWAY_SERVER\nshutdown\ne\n",
    "s\n",
    "z\n127.0.0.1\n1\n1\n",
    "A\nnot-the-token\ne\n",
    "A\n\ne\n",
    "\n",
    "\n\n\n",
]


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=SECONDS)


def answer_to(port: int, command: str | bytes) -> bytes:
    """Everything that the listener answers to the command, sent with nothing before and nothing after it."""
    with connect(port) as connection:
        try:
            connection.sendall(command.encode() if isinstance(command, str) else command)
            connection.shutdown(socket.SHUT_WR)
        except OSError:  # closed before the end of the command
            return b""
        return heard(connection)


def heard(connection: socket.socket) -> bytes:
    """What comes until the other side closes the connection."""
    answer = b""
    try:
        while part := connection.recv(65536):
            answer += part
    except ConnectionResetError:
        pass
    return answer
