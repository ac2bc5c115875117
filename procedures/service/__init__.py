"""The automatic service, which optimizes tables according to their properties."""

from procedures.service.service import Service

__all__ = ["Service"]
