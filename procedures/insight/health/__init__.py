"""The parts and the score of ``use.health``, and the advice."""
