"""Virtual tables, one file each: ``<table>.<name>``. Adding one is adding a file and its line in ``VIRTUAL_TABLES``."""

from catalog.virtual_tables.base import VirtualTable
from catalog.virtual_tables.optimizations import OPTIMIZATIONS

VIRTUAL_TABLES: dict[str, VirtualTable] = {table.name: table for table in (OPTIMIZATIONS,)}

__all__ = ["VIRTUAL_TABLES", "VirtualTable"]
