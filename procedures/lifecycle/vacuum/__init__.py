"""The parts of ``use.vacuum``."""
