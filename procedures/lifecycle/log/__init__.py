"""One module per mode of ``use.consolidate_log``."""
