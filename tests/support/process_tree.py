"""What the kernel tells of a process and its children."""

import contextlib
import ipaddress
from pathlib import Path

_LISTENING = "0A"


def tree(root: int) -> list[int]:
    """The process and all below it."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            # The name of a program may hold spaces and parentheses.
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def threads(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def seen_from_outside(pid: int) -> bytes:
    """What other users, or the same one, may read of a process: its command line and its environment."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() + Path(f"/proc/{pid}/environ").read_bytes()
    except ProcessLookupError:  # it ended meanwhile
        return b""


def listening(pids: list[int]) -> dict[int, ipaddress.IPv4Address | ipaddress.IPv6Address]:
    """The address of each port that one of the processes listens on."""
    sockets = set()
    for pid in pids:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                target = str(descriptor.readlink())
                if target.startswith("socket:["):
                    sockets.add(target[len("socket:[") : -1])
    found = {}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTENING and fields[9] in sockets:
                address, _, port = fields[1].partition(":")
                found[int(port, 16)] = _address(address)
    return found


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    # Words of four bytes, each in the order of the machine.
    raw = b"".join(bytes.fromhex(text[i : i + 8])[::-1] for i in range(0, len(text), 8))
    address = ipaddress.ip_address(raw)
    return getattr(address, "ipv4_mapped", None) or address
