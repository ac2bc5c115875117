"""The HTTP endpoint that Prometheus reads the metrics of the service from."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from catalog.errors import InvalidArgumentError, MissingPackageError, UseError
from procedures.service.service_metrics import COUNTER, METRICS, Sample
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
        raise _refusal(address, error) from error
    try:
        host = f"[{address.host}]" if ":" in address.host else address.host
        yield f"http://{host}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _refusal(address: MetricsAddress, error: OSError) -> UseError:
    if error.errno == errno.EADDRINUSE:
        return UseError(
            f"metrics-port = {address.port} on {address.host} is in use: use another port, or 0 for a free one.",
            code="USE_PORT_IN_USE",
            sql_state="55006",
        )
    if isinstance(error, PermissionError):
        return InvalidArgumentError.of("metrics-port", address.port, "a port that you may use, such as 1024 or above")
    return InvalidArgumentError.of("metrics-host", address.host, "a name or an address of this machine")
