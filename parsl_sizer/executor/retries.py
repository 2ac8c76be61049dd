"""For Parsl's own retries."""

from __future__ import annotations

import math
from typing import Any

from parsl_sizer.model import ResourcesExhausted


def retry_handler(error: Exception, task_record: Any) -> float:  # noqa: ARG001
    """Tell Parsl not to retry `ResourcesExhausted`, if given to ``Config(retry_handler=...)``.

    A `SizedExecutor` does not need it: a retry of a task that fits no node is answered with the
    same error at once. Any other error costs one retry.

    >>> retry_handler(ValueError("again"), {})
    1.0
    """
    return math.inf if isinstance(error, ResourcesExhausted) else 1.0
