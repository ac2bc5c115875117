"""Functions of users that the service calls when something happens to a table."""

from __future__ import annotations

from catalog.errors import InvalidArgumentError
from procedures.process.application import application
from procedures.process.notifications import Receiver, Subscription


def on_event(receiver: Receiver) -> Subscription:
    """Registers a function that the service of this process calls with a ``Notification``.

    It is called in a thread of the service, and an error in it is logged. The service of this process must run: that of
    another process calls the functions that are registered there.

    Args:
        receiver: takes one ``Notification``.

    Returns:
        The subscription; its method ``cancel()`` ends it.

    Raises:
        InvalidArgumentError: the receiver cannot be called.
    """
    if not callable(receiver):
        raise InvalidArgumentError.of("receiver", receiver, "a function that takes a Notification")
    return application().notifications.subscribe(receiver)
