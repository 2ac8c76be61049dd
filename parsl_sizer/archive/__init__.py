"""What happened before? Every attempt of every run, and what other systems have logged."""

from .base import Entry, Run

__all__ = ["Entry", "Run"]
