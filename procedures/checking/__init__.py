"""What ``use.check`` looks at: ``metadata`` for the log and the listing, ``rows`` for the data itself."""
