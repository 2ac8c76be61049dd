"""For Parsl's own retries."""

from __future__ import annotations

import math
from typing import Any

from parsl_sizer.model import ResourcesExhausted


def retry_handler(error: Exception, task_record: Any) -> float:  # noqa: ARG001
    """Give this to ``Config(retry_handler=...)`` together with ``retries``.

    A task that ran out of a resource in the largest allocation there is would only climb
    the whole ladder again: it is not retried. Anything else costs one retry, as without us.

    >>> retry_handler(ValueError("again"), {})
    1.0
    """
    return math.inf if isinstance(error, ResourcesExhausted) else 1.0
