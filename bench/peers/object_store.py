"""A server for buckets that counts what it is asked for, in place of the local file system."""

from __future__ import annotations

import json
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from peers.measures import is_log

COUNTS = "/_counts/"
_NAMES = {"GET": "gets", "HEAD": "heads", "PUT": "puts", "DELETE": "deletes", "POST": "posts"}

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class CountingStore:
    """A server's application whose requests are counted by bucket and kind of object.

    A request for ``/_counts/<bucket>`` is answered with the counts of that bucket, which begin anew.

    Args:
        application: answers all other requests.
    """

    def __init__(self, application: Application) -> None:
        self._application = application
        self._lock = threading.Lock()
        self._counts: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answers a request."""
        path, method = str(environ.get("PATH_INFO", "")), str(environ["REQUEST_METHOD"])
        if path.startswith(COUNTS):
            return self._counted(path.removeprefix(COUNTS), start_response)
        bucket, _, key = path.strip("/").partition("/")
        kind = "data" if key.endswith(".parquet") and not is_log(f"/{key}") else "log"
        # A listing is a GET of the bucket itself.
        name = _NAMES.get(method, "others") if key else "lists"
        sent = int(environ.get("CONTENT_LENGTH") or 0)
        answer = list(self._application(environ, start_response))
        with self._lock:
            counts = self._counts[bucket]
            counts[f"{kind}.{name}"] += 1
            if name == "gets":
                counts[f"{kind}.bytes_read"] += sum(map(len, answer))
            elif name in ("puts", "posts"):
                counts[f"{kind}.bytes_written"] += sent
        return answer

    def _counted(self, bucket: str, start_response: Callable[..., Any]) -> Iterable[bytes]:
        with self._lock:
            text = json.dumps(self._counts.pop(bucket, {})).encode()
        start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(text)))])
        return [text]


@contextmanager
def served() -> Iterator[str]:
    """The address of a server without a bucket; needs the extra ``object-stores``."""
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        """Says nothing of requests."""

        protocol_version = "HTTP/1.1"

        def log(self, *_: object, **__: object) -> None:
            """Nothing."""

    store = CountingStore(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, store, threaded=True, request_handler=Quiet)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
