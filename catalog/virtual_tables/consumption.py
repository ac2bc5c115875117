"""``<table>.consumption``: one row per scan of the table by a finished query, if records are turned on."""

from __future__ import annotations

from catalog.insights.consumption import scans_of
from catalog.insights.scan_rows import CONSUMPTION_SCHEMA
from catalog.virtual_tables.virtual_table import VirtualTable

CONSUMPTION = VirtualTable("consumption", CONSUMPTION_SCHEMA, scans_of)
