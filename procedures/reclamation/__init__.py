"""The parts of ``use.purge`` and of the reclamation in the background: what is older than a limit is deleted."""
