"""What did it cost? Pure: outcomes in, figures, tables and pictures out.

`metrics` adds up the outcomes of a run as they come; `compare` ranks the runs of
several strategies; `text` and `plot` show either to people. Nothing here knows
whether the outcomes are of a replay or of a real run.
"""

from .compare import Result, Standing, standings
from .metrics import Metrics, Tally, measures, summary

__all__ = ["Metrics", "Result", "Standing", "Tally", "measures", "standings", "summary"]
