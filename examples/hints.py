"""What can be said about tasks, if something is known: for an app, for a call, for all.

python examples/hints.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import parsl
from parsl import python_app
from parsl.config import Config

from parsl_sizer import SizedExecutor, sized, sizing_of


@python_app
@sized(memory="300MB", labels={"team": "genomes"})
def assemble(
    megabytes: int,
    parsl_resource_specification: Mapping[str, object] = {},  # noqa: ARG001
) -> int:
    """A first guess for the app. Parsl reads its last parameter: every call can say more."""
    return len(bytearray(b"x") * (megabytes * 1_000_000))


@python_app
@sized(no_retry=True, never_kill=True)
def publish(text: str) -> str:
    """It has effects outside, so it must neither be run twice nor stopped half-way."""
    return f"published: {text}"


@python_app
def run(program: str, megabytes: int) -> str:
    """One app for several programs, of which each has its own size."""
    return f"{program} used {len(bytearray(b'x') * (megabytes * 1_000_000)) // 1_000_000} MB"


def by_program(
    function: Callable[..., Any], args: Sequence[Any], _: Mapping[str, Any]
) -> str | None:
    """The category of a task; None leaves it to the name of its function."""
    return f"run {args[0]}" if function.__name__ == "run" else None


def main() -> None:
    executor = SizedExecutor(node="memory=1GB", category=by_program)
    with parsl.load(Config(executors=[executor])):
        futures = [
            assemble(100),
            # Exactly this much, whatever is learned: stopped above, and not tried with more.
            assemble(150, parsl_resource_specification={"memory": "200MB", "fixed": True}),
            # A size of its own to learn, and a number that may explain it.
            assemble(
                250,
                parsl_resource_specification={
                    "category": "assemble, many reads",
                    "features": {"reads": 2.5e6},
                },
            ),
            publish("a table"),
            run("bwa", 80),
            run("samtools", 20),
        ]
        for future in futures:
            print(future.result())
            print(sizing_of(future))


if __name__ == "__main__":
    main()
