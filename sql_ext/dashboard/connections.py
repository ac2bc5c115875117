"""Connections of the dashboard: no more than a fixed number at once, however many a client opens."""

from __future__ import annotations

import asyncio
from typing import cast

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 64


class LimitedConnection(H11Protocol):
    """A connection that takes the place of another one if there are too many.

    The oldest of those without a complete request under way is closed. So silent clients keep nobody out.
    """

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See ``asyncio.BaseProtocol``."""
        super().connection_made(cast("asyncio.Transport", transport))
        self._opened_at = self.loop.time()
        known = (connection for connection in self.connections if isinstance(connection, LimitedConnection))
        opened = [connection for connection in known if not connection.transport.is_closing()]
        if len(opened) > MOST_CONNECTIONS:
            min(opened, key=LimitedConnection._order_of_closing).transport.abort()

    def _order_of_closing(self) -> tuple[bool, float]:
        # There is no cycle before the first request. The body of a request may never arrive.
        is_waiting = bool(getattr(self.cycle, "response_complete", True) or self.cycle.more_body)
        return not is_waiting, self._opened_at
