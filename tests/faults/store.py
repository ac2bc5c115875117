"""A table in a bucket of an S3 server that throttles, answers late, and drops connections."""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from faults import oracle
from faults.results import Outcome

JOB = Path(__file__).with_name("store_job.py")
ROOT = Path(__file__).resolve().parents[2]
BUCKET = "lake"
TABLE = "t"
THROTTLED, LATE, DROPPED, LOST = "503 SlowDown", "late answers", "dropped requests", "dropped answers"
KINDS = (THROTTLED, LATE, DROPPED, LOST)
# Share of the requests to which the fault happens.
_RATES = {THROTTLED: 0.25, LATE: 0.3, DROPPED: 0.1, LOST: 0.1}
_LATE_SECONDS = 1.0
_SLOW_DOWN = (
    b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code>'
    b"<Message>Please reduce your request rate.</Message></Error>"
)
_SWITCH = "/_faults/"

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class FaultyStore:
    """A server's application, to whose requests faults happen while one is switched on.

    Args:
        application: the sound one.
        seed: decides which requests are hit.
    """

    def __init__(self, application: Application, seed: int) -> None:
        self._application = application
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self.kind: str | None = None
        self.struck: Counter[str] = Counter()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answers a request, or not; a request below ``/_faults/`` switches a fault on or all faults off."""
        path = str(environ.get("PATH_INFO", ""))
        if path.startswith(_SWITCH):
            self.kind = path.removeprefix(_SWITCH) or None
            start_response("200 OK", [("Content-Length", "0")])
            return [b""]
        with self._lock:
            kind = self.kind if self.kind and self._random.random() < _RATES[self.kind] else None
            self.struck[kind or "none"] += 1
        if kind == LATE:
            time.sleep(_LATE_SECONDS * self._random.random())
        if kind == THROTTLED:
            start_response(
                "503 Slow Down", [("Content-Type", "application/xml"), ("Content-Length", str(len(_SLOW_DOWN)))]
            )
            return [_SLOW_DOWN]
        if kind == DROPPED:
            return _dropped(environ)
        answer = self._application(environ, start_response)
        return _dropped(environ) if kind == LOST else answer


def _dropped(environ: dict[str, Any]) -> Iterable[bytes]:
    """Closes the connection without an answer."""
    environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
    raise ConnectionResetError


@contextmanager
def served(seed: int) -> Iterator[tuple[str, FaultyStore]]:
    """The address of a server with an empty bucket, and its faults."""
    import boto3
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        """Says nothing of requests, and less of dropped ones."""

        def log(self, *_: object, **__: object) -> None:
            """Nothing."""

        def log_error(self, *_: object) -> None:
            """Nothing."""

    store = FaultyStore(DomainDispatcherApplication(create_backend_app), seed)
    server = make_server("127.0.0.1", 0, store, threaded=True, request_handler=Quiet)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}"
    client = _client(boto3, address)
    # All servers of a process have the same objects.
    urllib.request.urlopen(urllib.request.Request(f"{address}/moto-api/reset", method="POST")).close()
    client.create_bucket(Bucket=BUCKET)
    try:
        yield address, store
    finally:
        server.shutdown()
        thread.join()


def _client(boto3: Any, address: str) -> Any:
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    return boto3.client("s3", endpoint_url=address, region_name="us-east-1", **keys)


def download(address: str, folder: Path) -> Path:
    """Copies the table out of the bucket, for the oracle."""
    import boto3

    client = _client(boto3, address)
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=f"{TABLE}/"):
        for entry in page.get("Contents", []):
            if not entry["Key"].endswith("/"):
                file = folder / entry["Key"]
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(client.get_object(Bucket=BUCKET, Key=entry["Key"])["Body"].read())
    return folder / TABLE


def run(kind: str, seed: int, folder: Path) -> Iterator[Outcome]:
    """Runs all operations on a table in the bucket while a fault is on, and judges the table afterwards."""
    folder.mkdir(parents=True, exist_ok=True)
    with served(seed) as (address, store):
        paths = os.pathsep.join([str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "support")])
        done = subprocess.run(
            [sys.executable, "-P", str(JOB), address, BUCKET, TABLE, kind, str(folder)],
            env={"SPARK_LOCAL_IP": "127.0.0.1", **os.environ, "PYTHONPATH": paths, "TZ": "UTC"},
            capture_output=True,
            text=True,
            check=False,
        )
        case = f"store / {kind} / {seed}"
        if done.returncode:
            yield Outcome(case, "all on S3", kind, "", f"the job failed: {done.stdout[-500:]} {done.stderr[-2000:]}")
            return
        seen = json.loads(done.stdout.splitlines()[-1])
        table = download(address, folder / "copy")
    struck = store.struck[kind]
    problems = [f"{operation}: {text}" for operation, text in seen["unclear"].items()]
    if oracle.ids(table) not in seen["ids"]:
        problems.append(f"{len(oracle.ids(table))} rows instead of {[len(ids) for ids in seen['ids']]}")
    problems += [f"files are missing: {oracle.missing(table)[:1]}"] if oracle.missing(table) else []
    problems += [f"a vacuum leaves {oracle.orphans(table)[:1]}"] if oracle.orphans(table) else []
    problems += [f"after the faults: {seen['recovery']}"] if seen["recovery"] else []
    first = "; ".join(problems) or None
    for operation, error in seen["errors"].items():
        where = f"{struck} of {sum(store.struck.values())} requests" if struck else ""
        yield Outcome(f"{case} / {operation}", operation, kind, where, first, error)
        first = None
