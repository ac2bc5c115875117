"""The HTTP endpoint that Prometheus reads the metrics of the service from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from catalog.errors import MissingPackageError
from procedures.service.service_metrics import COUNTER, METRICS, Sample
from sql_ext.server.listening import host_in_url, port_refusal
from sql_ext.server.metrics_address import MetricsAddress

if TYPE_CHECKING:
    from prometheus_client.registry import Collector


@contextmanager
def metrics_endpoint(address: MetricsAddress, samples: Callable[[], Iterable[Sample]]) -> Iterator[str]:
    """Serves metrics while the block runs; the block gets the URL.

    Args:
        address: where to listen.
        samples: returns the current samples; called for each request, in a thread of the endpoint.

    Raises:
        MissingPackageError: prometheus-client is not installed.
        InvalidArgumentError: the port needs privileges, or the host is not an address of this machine.
        UseError: the port is in use (``USE_PORT_IN_USE``).
    """
    try:
        from prometheus_client import CollectorRegistry, start_http_server
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
    except ModuleNotFoundError as error:
        raise MissingPackageError.of("prometheus-client", "metrics") from error

    class ServiceCollector:
        def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
            current = list(samples())
            for metric in METRICS:
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
    try:
        yield f"http://{host_in_url(address.host)}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
