"""Parsl's face: an executor that sizes what it passes on.

Parsl calls `SizedExecutor.submit`. `intake` reads the category, the features and the
user's hints off the call; the `Driver` gives the task to the decision loop, and what
the loop launches to the inner executor, through the dialect in `engines`, with the
`monitor` around it. When an attempt comes back `ending` says how it ended; the loop
learns, retries or settles, and the user's future gets the result.
"""

from .executor import SizedExecutor
from .hints import sized, with_hints
from .pool import SizedPoolExecutor, register_joblib
from .profiles import profile_nodes
from .retries import retry_handler
from .scaling import Scaling
from .splitting import Exhaustion, Part, Split
from .stages import stage
from .story import Sizing, sizing_of

__all__ = [
    "Exhaustion",
    "Part",
    "Scaling",
    "SizedExecutor",
    "SizedPoolExecutor",
    "Sizing",
    "Split",
    "profile_nodes",
    "register_joblib",
    "retry_handler",
    "sized",
    "sizing_of",
    "stage",
    "with_hints",
]
