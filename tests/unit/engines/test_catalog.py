"""Which executors can be wrapped, and what is said of those that cannot."""

from __future__ import annotations

from typing import Any

import pytest
from parsl.executors import HighThroughputExecutor, MPIExecutor, ThreadPoolExecutor
from parsl.executors.base import ParslExecutor
from parsl.launchers import SimpleLauncher
from parsl.providers import LocalProvider

from parsl_sizer import SizedExecutor
from parsl_sizer.engines import CannotWrap
from parsl_sizer.engines.catalog import ENGINES, REFUSED, engine_for
from parsl_sizer.engines.htex import HighThroughput
from parsl_sizer.engines.threads import Threads


def local(**options: Any) -> HighThroughputExecutor:
    return HighThroughputExecutor(address="127.0.0.1", provider=LocalProvider(), **options)


def test_each_executor_has_its_engine() -> None:
    assert isinstance(engine_for(local()), HighThroughput)
    assert isinstance(engine_for(ThreadPoolExecutor()), Threads)


def test_a_users_subclass_is_wrapped_like_its_base() -> None:
    class Mine(ThreadPoolExecutor):
        """A user's own."""

    assert isinstance(engine_for(Mine()), Threads)
    assert isinstance(SizedExecutor(Mine()), Mine)


def pretended(name: str) -> ParslExecutor:
    """An executor of this name; most need software that is not installed."""
    return type(name, (ThreadPoolExecutor,), {})()


@pytest.mark.parametrize("name", REFUSED)
def test_some_cannot_be_wrapped_and_the_refusal_says_why_and_what_to_do(name: str) -> None:
    with pytest.raises(CannotWrap) as caught:
        SizedExecutor(pretended(name))
    assert f"cannot wrap a {name}: {REFUSED[name]}." in str(caught.value)
    assert "Give this executor to Config as it is." in str(caught.value)


def test_a_real_mpi_executor_is_refused_too() -> None:
    provider = LocalProvider(launcher=SimpleLauncher())
    inner = MPIExecutor(address="127.0.0.1", max_workers_per_block=1, provider=provider)
    with pytest.raises(CannotWrap, match="an MPI task spans nodes"):
        SizedExecutor(inner)


def test_so_is_one_that_is_in_mpi_mode_by_another_way() -> None:
    inner = local()
    inner.enable_mpi_mode = True
    with pytest.raises(CannotWrap, match="HighThroughputExecutor in MPI mode: an MPI task spans"):
        SizedExecutor(inner)


@pytest.mark.parametrize("inner", [5, object(), "htex", ParslExecutor])
def test_what_is_no_executor_is_refused(inner: Any) -> None:
    with pytest.raises(CannotWrap, match="SizedExecutor cannot wrap"):
        SizedExecutor(inner)


def test_a_sized_executor_is_not_sized_again() -> None:
    with pytest.raises(CannotWrap):
        SizedExecutor(SizedExecutor(ThreadPoolExecutor()))


def test_every_engine_that_is_named_can_be_imported() -> None:
    import importlib

    for home in ENGINES.values():
        module, _, name = home.partition(":")
        assert hasattr(importlib.import_module(module), name)
