"""The parts of ``use.vacuum``: inventories, candidates with their reasons, and deletion at a limited rate."""
