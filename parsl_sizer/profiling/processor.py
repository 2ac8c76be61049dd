"""How fast the processor and the memory are, measured with nothing but Python."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from contextlib import ExitStack

Measured = tuple[float, str]
"""A figure, and how it was measured."""

HIGHEST = 2000
PROGRAM = f"""\
import time
def verify():
    for number in range(3, {HIGHEST} + 1):
        divisor = 2
        while divisor * divisor <= number and number % divisor:
            divisor += 1
verify()
print("ready", flush=True)
seconds = float(input())
events, began = 0, time.perf_counter()
while (now := time.perf_counter()) < began + seconds:
    verify()
    events += 1
print(events / (now - began))
"""
"""What sysbench does: an event is to divide all numbers up to one by what may divide them."""
BLOCK = 64 * 2**20
"""Bytes copied at a time: more than most caches hold."""
START_S = 20.0
"""So long interpreters may take to start, all together."""


def cores() -> int:
    """How many processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def speed(processes: int, seconds: float) -> Measured:
    """Events per second, of so many interpreters together."""
    with ExitStack() as stack:
        running = []
        for _ in range(processes):
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            stack.enter_context(process)
            stack.callback(process.kill)  # before it is waited for
            running.append(process)
        for process in running:
            assert process.stdout is not None
            process.stdout.readline()
        for process in running:
            assert process.stdin is not None
            process.stdin.write(f"{seconds}\n")
            process.stdin.flush()
        rates = [float(process.communicate(timeout=seconds + START_S)[0]) for process in running]
    python = ".".join(map(str, sys.version_info[:2]))
    return math.fsum(rates), f"built-in: primes up to {HIGHEST} in Python {python}"


def bandwidth(seconds: float) -> Measured:
    """Bytes per second that one thread copies from one place in memory to another."""
    source, target = memoryview(bytearray(BLOCK)), memoryview(bytearray(BLOCK))
    part = b"\1" * 2**20
    for start in range(0, BLOCK, len(part)):  # else there is no memory behind it yet
        source[start : start + len(part)] = part
    target[:] = source
    copies, began = 0, time.perf_counter()
    while (now := time.perf_counter()) < began + seconds:
        target[:] = source
        copies += 1
    return copies * BLOCK / (now - began), f"built-in: copies of {BLOCK >> 20} MiB"
