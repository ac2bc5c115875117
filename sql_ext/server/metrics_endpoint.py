"""The HTTP endpoint of the service: metrics for Prometheus, and whether its loop works, at ``/healthz``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from catalog.errors import MissingPackageError
from procedures.service.service_metrics import COUNTER, METRICS, TABLE_METRICS, Sample
from sql_ext.server.listening import host_in_url, port_refusal
from sql_ext.server.metrics_address import MetricsAddress

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from prometheus_client.registry import Collector

HEALTH_PATH = "/healthz"


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
        from prometheus_client import CollectorRegistry, make_wsgi_app, start_http_server
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
        server, thread = start_http_server(address.port, address.host, registry)
    except OSError as error:
        raise port_refusal(("metrics-port", "metrics-host"), address.port, address.host, error) from error
    server.set_app(_with_health(make_wsgi_app(registry), problem))
    try:
        yield f"http://{host_in_url(address.host)}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _with_health(metrics: WSGIApplication, problem: Callable[[], str | None]) -> WSGIApplication:
    def answer(environment: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
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
