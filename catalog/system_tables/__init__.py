"""Tables about all tables, one file each: ``use_catalog.system_lake_tables.<name>``.

Adding one is adding a file and its line in ``SYSTEM_TABLES``.
"""

from catalog.system_tables.all_consumption import CONSUMPTION
from catalog.system_tables.all_ingestion import INGESTION
from catalog.system_tables.all_optimizations import OPTIMIZATIONS
from catalog.system_tables.fleet import FLEET
from catalog.system_tables.metastore_summary import METASTORE_SUMMARY
from catalog.system_tables.system_table import SystemQuery, SystemTable

SYSTEM_TABLES: dict[str, SystemTable] = {
    table.name: table for table in (METASTORE_SUMMARY, OPTIMIZATIONS, INGESTION, CONSUMPTION, FLEET)
}

__all__ = ["SYSTEM_TABLES", "SystemQuery", "SystemTable"]
