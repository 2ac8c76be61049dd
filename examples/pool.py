"""A pool as in concurrent.futures, whose calls are given what they need.

    python examples/pool.py

The program is one for `ProcessPoolExecutor`; only its pool is another. Some of its chunks of
data are ten times as large as the rest, and nobody has said so.
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import as_completed

from parsl_sizer import SizedPoolExecutor, sizing_of, with_hints

MB = 1_000_000
CHUNKS = [20, 30, 25, 20, 240, 30, 25, 20, 220, 30, 25, 20]


def mean(megabytes: int) -> float:
    """The mean of a chunk of data, all of which is in memory for that."""
    data = bytes(range(256)) * (megabytes * MB // 256)
    time.sleep(0.2)
    return sum(data[:256]) / 256


def count(first: int, last: int) -> int:
    """How many numbers are prime."""
    return sum(all(n % d for d in range(2, int(n**0.5) + 1)) for n in range(max(2, first), last))


async def counts(pool: SizedPoolExecutor) -> list[int]:
    """The same pool from asyncio."""
    loop = asyncio.get_running_loop()
    parts = [(n, n + 5_000) for n in range(0, 20_000, 5_000)]
    return await asyncio.gather(*[loop.run_in_executor(pool, count, *part) for part in parts])


def main() -> None:
    with SizedPoolExecutor(max_workers=4, node="cores=4,memory=1GB") as pool:
        means = list(pool.map(mean, CHUNKS))
        print(f"{len(means)} chunks, and each has a mean of {means[0]}.")

        hinted = with_hints(mean, category="mean, large", memory="400MB")
        futures = [pool.submit(hinted, megabytes) for megabytes in (250, 300)]
        for future in as_completed(futures):
            print(sizing_of(future))

        print(f"There are {sum(asyncio.run(counts(pool)))} primes below 20000.")


if __name__ == "__main__":
    main()
