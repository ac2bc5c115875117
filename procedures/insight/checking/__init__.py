"""The checks of ``use.check`` and the measures of ``use.clustering_information``."""
