"""What can a node do? Probes that run on nodes, each for a bounded time.

`measure`, in `probes`, runs them one after the other: `processor` for speed and memory,
`storage` for a file, in place of either the programs of `tools` where they are installed, and
`facts` for what is only looked up. `exclusive` lets one call at a time do that on a node, and
`travel` brings all of it to workers that have not got the package. What comes back are two
tables of plain values: features, larger is better, and how each was measured. `profile` makes
a `NodeProfile` of them.

What runs on nodes uses the standard library and nothing else of the package.
"""

from .facts import EXTRAS, FLAG
from .probes import FEATURES, SECONDS, STEPS, measure
from .profile import check, profile_here, profile_of

__all__ = [
    "EXTRAS",
    "FEATURES",
    "FLAG",
    "SECONDS",
    "STEPS",
    "check",
    "measure",
    "profile_here",
    "profile_of",
]
