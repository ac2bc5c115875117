"""The automatic service: what the properties of tables ask for becomes actions, and actions become runs."""

from procedures.service.service import Service

__all__ = ["Service"]
