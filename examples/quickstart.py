"""Two apps on this machine, and nobody says what they need.

    python examples/quickstart.py

The first tasks of an app start from a guess. What they turn out to use sizes the later ones.
"""

from __future__ import annotations

import parsl
from parsl import python_app
from parsl.config import Config

from parsl_sizer import SizedExecutor, sizing_of


@python_app
def align(megabytes: int) -> int:
    import time

    held = bytearray(b"x") * (megabytes * 1_000_000)
    time.sleep(0.5)
    return len(held)


@python_app
def assemble(megabytes: int) -> int:
    import time

    held = bytearray(b"x") * (megabytes * 1_000_000)
    time.sleep(0.5)
    return len(held)


def main() -> None:
    # Without `node` it is all that this machine has; on a small one there is more to see.
    executor = SizedExecutor(node="memory=400MB")
    with parsl.load(Config(executors=[executor])):
        futures = [align(60 + 5 * (number % 3)) for number in range(10)]
        futures += [assemble(200 + 10 * (number % 3)) for number in range(10)]
        total = sum(future.result() for future in futures)
        print(f"{len(futures)} tasks have held {total / 1e9:.1f} GB in all.")
        print("The first of each app, and the last:")
        for future in (futures[0], futures[9], futures[10], futures[19]):
            print(sizing_of(future))
    # What the run cost is printed when it ends.


if __name__ == "__main__":
    main()
