from __future__ import annotations

import pytest

from parsl_sizer.model import UnknownStrategy
from parsl_sizer.strategies import Setting
from parsl_sizer.strategies.catalog import family


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("percentil", "did you mean 'percentile'"),
        ("percentile:q=5", "it takes p"),
        ("percentile:p", "OPTION=VALUE"),
        ("percentile:p=true", "p must be a number"),
        ("greedy-bucketing:deterministic=abc", "deterministic must be true or false"),
        ("quantized-bucketing:together=1", "together must be true or false"),
        ("auto:price=-1", "price is a share"),
    ],
)
def test_what_cannot_be_made_is_told_in_a_sentence(spec: str, said: str) -> None:
    with pytest.raises(UnknownStrategy, match=said):
        family(spec, Setting())


def test_a_family_is_taken_as_it_is() -> None:
    made = family("doubling", Setting())
    assert family(made, Setting()) is made
