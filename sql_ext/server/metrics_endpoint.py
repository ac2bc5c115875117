"""The HTTP endpoint of the service: metrics for Prometheus, and whether its loop works, at ``/healthz``."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any, cast
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from catalog.errors import MissingPackageError
from procedures.service.service_metrics import COUNTER, METRICS, TABLE_METRICS, Sample
from sql_ext.server.listening import host_in_url, port_refusal
from sql_ext.server.metrics_address import MetricsAddress

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

    Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]  # of WSGI

HEALTH_PATH = "/healthz"
# Each connection has a thread.
_MOST_CONNECTIONS = 64
_SECONDS_TO_SEND = 10.0


@contextmanager
def metrics_endpoint(
    address: MetricsAddress, samples: Callable[[], Iterable[Sample]], problem: Callable[[], str | None] = lambda: None
) -> Iterator[str]:
    """Serves metrics and ``/healthz`` while the block runs; the block gets the URL of the metrics.

    Args:
        address: where to listen.
        samples: returns the current samples; called for each request, in a thread of the endpoint.
        problem: returns why the service does not work, in one line, or None; called likewise.

    Raises:
        MissingPackageError: prometheus-client is not installed.
        InvalidArgumentError: the port needs privileges, or the host is not an address of this machine.
        UseError: the port is in use (``USE_PORT_IN_USE``).
    """
    try:
        from prometheus_client import CollectorRegistry, make_wsgi_app
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
    except ModuleNotFoundError as error:
        raise MissingPackageError.of("prometheus-client", "metrics") from error

    class ServiceCollector:
        def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
            current = list(samples())
            of_tables = [metric for metric in TABLE_METRICS if any(sample.metric == metric for sample in current)]
            for metric in (*METRICS, *of_tables):
                family_type = CounterMetricFamily if metric.kind == COUNTER else GaugeMetricFamily
                family = family_type(metric.name, metric.doc, labels=[metric.label] if metric.label else [])
                for sample in current:
                    if sample.metric == metric:
                        family.add_metric([sample.label_value] if sample.label_value else [], sample.value)
                yield family

    registry = CollectorRegistry()
    registry.register(cast("Collector", ServiceCollector()))
    try:
        server = make_server(
            address.host, address.port, _with_health(make_wsgi_app(registry), problem), _Server, _Connection
        )
    except OSError as error:
        raise port_refusal(("metrics-port", "metrics-host"), address.port, address.host, error) from error
    thread = threading.Thread(target=server.serve_forever, name="use-metrics", daemon=True)
    thread.start()
    try:
        yield f"http://{host_in_url(address.host)}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _with_health(metrics: Application, problem: Callable[[], str | None]) -> Application:
    def answer(environment: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if environment.get("PATH_INFO") != HEALTH_PATH:
            return metrics(environment, start)
        try:
            reason = problem()
        except Exception as error:  # noqa: BLE001 - a service whose state is unknown does not count as working
            reason = f"unknown: {error}"
        start(
            "200 OK" if reason is None else "503 Service Unavailable", [("Content-Type", "text/plain; charset=utf-8")]
        )
        return [f"{' '.join((reason or 'ok').split())}\n".encode()]

    return answer


class _Connection(WSGIRequestHandler):
    timeout = _SECONDS_TO_SEND

    def handle(self) -> None:
        with suppress(OSError):  # the client is silent, or has gone
            super().handle()

    def log_message(self, *_: Any) -> None:
        """Writes nothing."""


class _Server(ThreadingMixIn, WSGIServer):
    """Serves each connection in a thread, and closes those beyond the limit."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], connection: type[WSGIRequestHandler]) -> None:
        infos = socket.getaddrinfo(*address, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        self.address_family = infos[0][0]
        self._connections: set[Any] = set()
        super().__init__(address, connection)

    def verify_request(self, request: Any, _: Any) -> bool:
        if len(self._connections) >= _MOST_CONNECTIONS:
            return False
        self._connections.add(request)
        return True

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)
