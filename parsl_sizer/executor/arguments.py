"""The arguments of `SizedExecutor`, read and checked in one place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from parsl_sizer.engines import Engine
from parsl_sizer.engines.several import Several
from parsl_sizer.model import Amounts, Kind, Outcome, Resources, SizerError, TaskInfo, parse_amounts
from parsl_sizer.placement import POLICIES as PLACEMENTS
from parsl_sizer.placement import Gate, Policy, policy
from parsl_sizer.scaling.policies import POLICIES as SCALINGS
from parsl_sizer.sizing import Categories
from parsl_sizer.strategies import Family, Proposal, Setting
from parsl_sizer.strategies.catalog import family
from parsl_sizer.strategies.modifiers import RoundedUp

from .scaling import Scaling
from .splitting import OnExhausted

OBJECTIVES = ("throughput", "waste")
PARSLS = "parsl"
"""Blocks are asked for by Parsl's own strategy."""
ON_EXHAUSTED = ("raise", "let_run", "split")

LEAST: Amounts = {Kind.MEMORY: 50e6, Kind.DISK: 100e6}
"""Less than this is not worth the retries: what an interpreter holds varies by some 10 MB."""


class BadArgument(SizerError, ValueError):
    """An argument of SizedExecutor that cannot be."""


def one_of(name: str, value: str, allowed: Sequence[str]) -> str:
    """The value, if it is an allowed one."""
    if value not in allowed:
        raise BadArgument(f"{name}={value!r} must be one of {', '.join(map(repr, allowed))}.")
    return value


def scaling(value: str | Scaling, inner: Any) -> Scaling | None:
    """How blocks are asked for, where there are blocks to ask for; None leaves it to Parsl."""
    if value == PARSLS:
        return None
    if not isinstance(value, Scaling):
        value = Scaling(one_of("scaling", value, (PARSLS, *SCALINGS)))
    if hasattr(inner, "members"):
        raise BadArgument(
            f"scaling={value.policy!r} is not possible with several inner executors: each of them "
            "asks for blocks by Parsl's strategy."
        )
    provider = getattr(inner, "provider", None)
    if provider is None or not hasattr(inner, "scale_out_facade"):
        raise BadArgument(
            f"scaling={value.policy!r} needs an inner executor with a provider to ask for blocks, "
            f"and {type(inner).__name__} has none."
        )
    if provider.max_blocks < 1:
        raise BadArgument(f"scaling={value.policy!r} needs max_blocks=1 or more in the provider.")
    return value


def on_exhausted(value: str | OnExhausted) -> str | OnExhausted:
    """What to do with tasks that run out: one of the words, or a user's function."""
    if callable(value):
        return value
    if value not in ON_EXHAUSTED:
        words = ", ".join(map(repr, ON_EXHAUSTED))
        raise BadArgument(f"on_exhausted={value!r} must be one of {words}, or a function.")
    return value


def gate(canaries: int) -> Gate | None:
    """What lets so many tasks of a new category run before the others; None for 0."""
    if type(canaries) is not int or canaries < 0:
        raise BadArgument(f"canaries={canaries!r} must be a number of tasks, or 0 for no gate.")
    return Gate(canaries) if canaries else None


def node_amounts(node: str | Mapping[Any, float] | None) -> Amounts | None:
    """What the user says that a node has: a text, a mapping or `Resources`; 0 is not said.

    >>> node_amounts("cores=16,memory=64GB")
    {<Kind.CORES: 'cores'>: 16.0, <Kind.MEMORY: 'memory'>: 64000000000.0}
    """
    if node is None:
        return None
    if isinstance(node, str):
        try:
            return parse_amounts(node)
        except ValueError as error:
            raise BadArgument(f"node={node!r}: {error}.") from None
    try:
        amounts = {Kind(kind): float(amount) for kind, amount in node.items()}
        Resources().updated(amounts)
    except (ValueError, TypeError, AttributeError):
        raise BadArgument(
            f"node={node!r} is not what a node has; write it like 'cores=16,memory=64GB'."
        ) from None
    if any(amount < 0 for amount in amounts.values()):
        raise BadArgument(f"node={node!r} has an amount below 0.")
    return {kind: amount for kind, amount in amounts.items() if amount}


def nodes_by_label(
    node: str | Mapping[Any, Any] | None, labels: Sequence[str]
) -> Mapping[str, Amounts | None]:
    """What a node of each executor has: the same for all, or a mapping by their labels.

    >>> nodes_by_label({"big": "memory=64GB"}, ["big", "standard"])
    {'big': {<Kind.MEMORY: 'memory'>: 64000000000.0}, 'standard': None}
    """
    if isinstance(node, Mapping) and node and not _are_kinds(node):
        if unknown := [label for label in node if label not in labels]:
            raise BadArgument(
                f"node={node!r} names {unknown[0]!r}, which is neither the label of an inner "
                f"executor ({', '.join(map(repr, labels))}) nor something that a node has."
            )
        return {label: node_amounts(node.get(label)) for label in labels}
    amounts = node_amounts(node)
    return dict.fromkeys(labels, amounts)


def _are_kinds(node: Mapping[Any, Any]) -> bool:
    return all(key in {kind.value for kind in Kind} for key in node)


def placement_policy(name: str, engine: Engine) -> Policy | None:
    """What chooses the node of a task; None leaves that to the ledger."""
    one_of("placement", name, tuple(PLACEMENTS))
    found = policy(name)
    if found is not None and not isinstance(engine, Several):
        raise BadArgument(
            f"placement={name!r} needs several inner executors, as in inner=[big, standard]: "
            f"{engine.name} picks the node of a task itself."
        )
    return found


def sized_kinds(kinds: Sequence[Any] | None, engine: Engine) -> tuple[Kind, ...]:
    """The kinds that are sized: those asked for, of those that can be measured there."""
    try:
        wanted = tuple(Kind) if kinds is None else tuple(Kind(kind) for kind in kinds)
    except ValueError:
        known = ", ".join(kind.value for kind in Kind)
        raise BadArgument(f"kinds={kinds!r} must be some of {known}.") from None
    return tuple(kind for kind in wanted if kind in engine.measures)


class Unsized:
    """A strategy that leaves every kind alone."""

    def propose(self, task: TaskInfo, failures: Sequence[Outcome], largest: Resources) -> Proposal:
        return Proposal({}, "not sized")

    def learn(self, outcome: Outcome) -> None:
        """Nothing is learned: nothing is going to be sized."""


def unsized() -> Categories:
    """What gives tasks what they request and nothing else."""
    return Categories(lambda category: Unsized())


def categories(
    strategy: str | Family,
    kinds: tuple[Kind, ...],
    objective: str,
    warn: Callable[[str], None],
) -> Categories:
    """The strategies that a live run asks and teaches: in whole cores, and not too little."""
    named = family(strategy, Setting(kinds, objective))
    return Categories(lambda category: RoundedUp(named(category), LEAST), kinds=kinds, warn=warn)
