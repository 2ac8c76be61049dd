"""The arguments of SizedExecutor: what they mean, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from parsl import Config
from parsl.executors import HighThroughputExecutor, ThreadPoolExecutor
from parsl.executors.status_handling import BlockProviderExecutor
from parsl.providers import LocalProvider

from parsl_sizer import Kind, Resources, Scaling, SizedExecutor
from parsl_sizer.executor import arguments
from parsl_sizer.executor.arguments import BadArgument
from parsl_sizer.executor.hints import BadHint
from parsl_sizer.model import TaskInfo, UnknownStrategy
from parsl_sizer.placement import UnknownOrder
from parsl_sizer.scaling import UnknownPolicy


def threads(**options: Any) -> SizedExecutor:
    return SizedExecutor(ThreadPoolExecutor(), **options)


def htex(**options: Any) -> SizedExecutor:
    inner = HighThroughputExecutor(address="127.0.0.1", provider=LocalProvider())
    return SizedExecutor(inner, **options)


@pytest.mark.parametrize(
    ("node", "amounts"),
    [
        (None, None),
        ("cores=16,memory=64GB", {Kind.CORES: 16.0, Kind.MEMORY: 64e9}),
        ({"memory": 5e9}, {Kind.MEMORY: 5e9}),
        ({Kind.MEMORY: 5e9, "cores": 2}, {Kind.MEMORY: 5e9, Kind.CORES: 2.0}),
        (Resources(cores=4, memory=1e9), {Kind.CORES: 4.0, Kind.MEMORY: 1e9}),
    ],
)
def test_a_node_is_stated_as_a_text_a_mapping_or_resources(node: Any, amounts: Any) -> None:
    assert arguments.node_amounts(node) == amounts


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"node": "big"}, "node='big'"),
        ({"node": "memory=much"}, "memory='much' is not an amount"),
        ({"node": {"souls": 3}}, r"node=\{'souls': 3\} is not what a node has"),
        ({"node": {"memory": "5"}, "kinds": ["souls"]}, r"kinds=\['souls'\] must be some of cores"),
        ({"node": {"memory": -5}}, "below 0"),
        ({"node": 5}, "node=5 is not what a node has"),
        ({"kinds": ["souls"]}, r"kinds=\['souls'\] must be some of cores, memory, disk, gpus"),
        ({"objective": "fun"}, "objective='fun' must be one of 'throughput', 'waste'"),
        ({"placement": "random"}, "placement='random' must be one of 'any'"),
        ({"on_exhausted": "cry"}, "on_exhausted='cry' must be one of 'raise', 'let_run'"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(options: dict[str, Any], told: str) -> None:
    with pytest.raises(BadArgument, match=told):
        htex(**options)


@pytest.mark.parametrize("canaries", [-1, 1.5, "3", None, True])
def test_canaries_are_counted(canaries: Any) -> None:
    with pytest.raises(BadArgument, match=r"canaries=.* must be a number of tasks"):
        htex(canaries=canaries)


def test_without_canaries_there_is_no_gate() -> None:
    assert arguments.gate(0) is None
    assert arguments.gate(3) is not None


def test_other_refusals_say_what_there_is() -> None:
    with pytest.raises(UnknownStrategy, match="nonesuch"):
        htex(strategy="nonesuch")
    with pytest.raises(BadHint, match="isolation='fork' is not possible with threads"):
        threads(isolation="fork")
    with pytest.raises(ValueError, match="lost_retries"):
        htex(lost_retries=-1)
    with pytest.raises(UnknownOrder, match="'lifo' is no order; there is 'first-come'"):
        htex(order="lifo")


def test_only_what_can_be_measured_is_sized() -> None:
    assert arguments.sized_kinds(None, htex()._engine) == (Kind.CORES, Kind.MEMORY, Kind.DISK)
    assert arguments.sized_kinds(["memory"], htex()._engine) == (Kind.MEMORY,)
    assert arguments.sized_kinds(["memory", "gpus"], htex()._engine) == (Kind.MEMORY,)
    assert arguments.sized_kinds(None, threads()._engine) == ()


def test_allocations_are_whole_cores_and_not_too_little() -> None:
    made = arguments.categories("auto", (Kind.CORES, Kind.MEMORY), "throughput", print)
    largest = Resources(cores=16, memory=64e9, disk=1e12)
    proposal = made.propose(TaskInfo(1, "align"), (), largest)
    assert proposal is not None
    assert proposal.amounts[Kind.CORES] % 1 == 0
    assert proposal.amounts[Kind.MEMORY] >= 50e6


def test_a_strategy_may_be_a_name_with_options_or_a_function() -> None:
    assert htex(strategy="percentile:p=95").strategy == "percentile:p=95"
    assert htex(strategy=lambda category: arguments.Unsized())


# What Parsl sees


def test_parsl_takes_it_for_the_inner_executor() -> None:
    on_htex, on_threads = htex(), threads()
    assert isinstance(on_htex, HighThroughputExecutor)
    assert isinstance(on_htex, BlockProviderExecutor)
    assert isinstance(on_threads, ThreadPoolExecutor)
    assert not isinstance(on_threads, BlockProviderExecutor)
    assert not isinstance(on_threads, HighThroughputExecutor)
    assert not hasattr(on_threads, "provider")
    assert on_htex.provider is on_htex.inner.provider
    assert type(on_htex) is type(htex())


def test_alone_it_is_a_local_htex() -> None:
    assert isinstance(SizedExecutor(), HighThroughputExecutor)
    assert isinstance(SizedExecutor().inner.provider, LocalProvider)


def test_what_parsl_sets_is_set_inside() -> None:
    made = threads()
    made.run_dir, made.run_id, made.label = "/somewhere", "1234", "mine"
    assert (made.inner.run_dir, made.inner.run_id) == ("/somewhere", "1234")
    assert (made.inner.label, made.label) == ("mine", "mine")
    made.inner.working_dir = "/elsewhere"
    assert made.working_dir == "/elsewhere"


def test_what_there_is_not_is_not_there() -> None:
    with pytest.raises(AttributeError):
        threads().nonesuch  # noqa: B018


def test_it_can_be_shown_in_a_configuration() -> None:
    one, two = htex(node="cores=2,memory=1GB"), threads()
    text = repr(Config(executors=[one, two]))
    assert "SizedExecutor" in text
    assert "node='cores=2,memory=1GB'" in text
    assert "inner=ThreadPoolExecutor(" in text


def test_two_of_one_name_are_refused_by_parsl() -> None:
    with pytest.raises(Exception, match="label"):
        Config(executors=[threads(), threads()])


def test_before_it_is_started_nothing_runs() -> None:
    import threading

    before = threading.enumerate()
    htex()
    assert threading.enumerate() == before


def test_blocks_are_parsls_unless_somebody_says_otherwise() -> None:
    assert htex()._policy is None
    assert htex(scaling="asa")._policy == Scaling("asa")
    assert htex(scaling=Scaling("per-stage", look_s=1.0))._policy.look_s == 1.0


@pytest.mark.parametrize(
    ("make", "scaling", "told"),
    [
        (htex, "now", "scaling='now' must be one of 'parsl', 'big-job'"),
        (threads, "asa", "needs an inner executor with a provider"),
    ],
)
def test_a_scaling_that_cannot_be_is_refused(make: Any, scaling: Any, told: str) -> None:
    with pytest.raises(BadArgument, match=told):
        make(scaling=scaling)


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(UnknownPolicy, match="is no policy"):
        Scaling("now")


def test_no_blocks_allowed_is_refused() -> None:
    provider = LocalProvider(init_blocks=0, max_blocks=0)
    inner = HighThroughputExecutor(address="127.0.0.1", provider=provider)
    with pytest.raises(BadArgument, match="max_blocks=1 or more"):
        SizedExecutor(inner, scaling="asa")


def test_whoever_gives_a_label_hears_where_it_belongs() -> None:
    made: Any = SizedExecutor
    with pytest.raises(BadArgument, match="give the label to that one"):
        made(label="big")
