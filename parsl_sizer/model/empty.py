"""The mapping that values share which leave one out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn


class _Empty(dict[Any, Any]):
    """A dict that stays empty, whoever holds it."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("This mapping is shared and cannot be changed: please make another.")

    __setitem__ = __ior__ = update = setdefault = _refuse

    def __reduce__(self) -> str:
        return "EMPTY"


EMPTY: Mapping[Any, Any] = _Empty()
