"""The steps of ``use.purge``, which the service takes too."""
