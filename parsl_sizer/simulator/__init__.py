"""What would have happened? Pure: a virtual clock, and the code that runs live.

`trace` reads the finished tasks of an earlier run (or `generate` makes some up) as
`Row`s; `replay` drives the sizing with them, one task after the other, and yields
every attempt's `Outcome`; `cluster` does the same with nodes, a queue and a clock.
`hindsight` is what only a replay can know: the trace beforehand.
"""

from .hindsight import TraceHindsight
from .replay import Replayed
from .trace import Row, read, write

__all__ = ["Replayed", "Row", "TraceHindsight", "read", "write"]
