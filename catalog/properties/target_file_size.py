"""The table property for the size of rewritten files; it needs no Spark."""

from __future__ import annotations

from catalog.settings.setting import SIZE, Setting

TARGET_FILE_BYTES_KEY = "use.index.targetFileBytes"
DEFAULT_TARGET_FILE_BYTES = 128 * 1024 * 1024
TARGET_FILE_BYTES = Setting(
    TARGET_FILE_BYTES_KEY,
    SIZE,
    "Size that rewritten data files should have: bytes, or with a unit, 128MB.",
    str(DEFAULT_TARGET_FILE_BYTES),
)
