"""The automatic service, which optimizes tables according to their properties."""
