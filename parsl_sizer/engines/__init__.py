"""One dialect per inner executor.

An inner executor is looked up in the `catalog`, which gives the `Engine` that speaks to
it: the engine says which kinds of resources the inner executor packs and enforces, puts
an allocation into its words, reads its errors, and knows its nodes.
"""

from .base import CannotWrap, Engine, Verdict

__all__ = ["CannotWrap", "Engine", "Verdict"]
