"""How large? Pure: no clock, no I/O, no thread.

A `Family` (from `catalog.family`) makes one `Strategy` per category. The sizer
asks it to `propose` before each attempt and lets it `learn` from each `Outcome`.
Inside, most strategies are a `Predictor` per kind, lifted by `PerKind`; modifiers
wrap any of them. One file per algorithm, with its paper.
"""

from .base import Family, Hindsight, Predictor, Proposal, Setting, Strategy, recall
from .per_kind import PerKind

__all__ = [
    "Family",
    "Hindsight",
    "PerKind",
    "Predictor",
    "Proposal",
    "Setting",
    "Strategy",
    "recall",
]
