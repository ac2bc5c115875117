"""Virtual tables, one file each: ``<table>.<name>``. Adding one is adding a file and its line in ``VIRTUAL_TABLES``."""

from catalog.virtual_tables.blocks import BLOCKS
from catalog.virtual_tables.consumption import CONSUMPTION
from catalog.virtual_tables.cubes import CUBES
from catalog.virtual_tables.index_files import INDEX_FILES
from catalog.virtual_tables.ingestion import INGESTION
from catalog.virtual_tables.optimizations import OPTIMIZATIONS
from catalog.virtual_tables.plans import PLANS
from catalog.virtual_tables.revisions import REVISIONS
from catalog.virtual_tables.virtual_table import VirtualTable

VIRTUAL_TABLES: dict[str, VirtualTable] = {
    table.name: table for table in (OPTIMIZATIONS, REVISIONS, CUBES, BLOCKS, INDEX_FILES, PLANS, INGESTION, CONSUMPTION)
}

__all__ = ["VIRTUAL_TABLES", "VirtualTable"]
