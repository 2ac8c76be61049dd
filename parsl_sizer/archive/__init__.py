"""What happened before? Every attempt of every run, and what other systems have logged.

`parsl_sizer.archive.open` finds and opens archives.
"""

from .base import Archive, ArchiveError, Entry, Query, Run, RunLine, Wait

__all__ = [
    "Archive",
    "ArchiveError",
    "Entry",
    "Query",
    "Run",
    "RunLine",
    "Wait",
]
