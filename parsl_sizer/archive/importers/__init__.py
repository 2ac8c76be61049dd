"""Logs of other systems, read as entries of an archive: one module per format."""
