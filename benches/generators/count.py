#!/usr/bin/env python3
"""What a request costs a load generator, counted: a row of a Markdown table for each.

    count.py --target TARGET --clients N [--server MODEL] THRONG TOOL...

Each figure is the difference of a long and a short load, over the requests that the long one had
more. Instructions in user space come from callgrind. It hides the vDSO, so reading the clock
appears as a bare system call and is counted apart. System calls, and all instructions where the
machine has hardware counters, come from perf.
"""

import argparse
import glob
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from processes import SERVER_CPU, allow_descriptors
from tools import TOOLS, Work
from trial import protocol_of, run_client, streams_of, with_server

CLOCK = re.compile(r"clock_gettime|gettimeofday")
# Lengths of the short and the long load: requests, or seconds of tools that do not count them.
UNDER_CALLGRIND = ((10_000, 90_000), (2, 8))
UNDER_PERF = ((20_000, 220_000), (1, 5))
HARDWARE = "instructions:u,instructions:k"


def callgrind_counts(path):
    """Instructions, and readings of the clock, in a file of callgrind."""
    names, instructions, readings, called = {}, 0, 0, ""
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith(("fn=", "cfn=")):
                place, _, name = line.partition("=")[2].strip().partition(" ")
                called = names.setdefault(place, name)
            elif line.startswith("calls=") and CLOCK.search(called):
                readings += int(line[6:].split()[0])
            elif line.startswith("totals:"):
                instructions += int(line.split()[1])
    return instructions, readings


def perf_counts(path, events):
    """As many counts as there are events."""
    with open(path, encoding="utf-8") as file:
        rows = [line.split(";") for line in file if ";" in line]
    counts = {row[2]: float(row[0]) for row in rows if row[0][:1].isdigit()}
    return tuple(counts[event] for event in events.split(","))


def counts_hardware():
    """Whether perf has hardware counters here."""
    run = subprocess.run(["perf", "stat", "-x;", "-e", "instructions:k", "true"],
                         capture_output=True, text=True, check=False)
    return any(line[:1].isdigit() for line in run.stderr.splitlines())


def difference(tool, arguments, lengths, before, read):
    """The differences of what `read` finds after a short and after a long load, a request."""
    found = []
    for much in lengths[0] if tool.counts else lengths[1]:
        def use(ports, pids, directory, much=much):
            work = Work(ports, arguments.clients, directory, arguments.throng,
                        requests=much if tool.counts else None,
                        seconds=None if tool.counts else much,
                        protocol=protocol_of(arguments.target),
                        streams=streams_of(arguments.target))
            run = run_client(tool, work, pids, before(directory))
            return run["requests"], *read(directory)
        found.append(with_server(tool, arguments.target, arguments.server, arguments.throng, use))
    more = [last - first for first, last in zip(*found)]
    if more[0] <= 0:
        raise RuntimeError("the longer load had no more requests")
    return [value / more[0] for value in more[1:]]


def by_callgrind(tool, arguments):
    """Instructions in user space and readings of the clock, a request."""
    def read(directory):
        counts = [callgrind_counts(path) for path in glob.glob(f"{directory}/callgrind.*")]
        return [sum(column) for column in zip(*counts)]
    return difference(
        tool, arguments, UNDER_CALLGRIND,
        lambda directory: ["valgrind", "--quiet", "--tool=callgrind", "--max-threads=5000",
                           "--fair-sched=yes",
                           f"--callgrind-out-file={directory}/callgrind.%p"], read)


def by_perf(tool, arguments, events):
    """Events a request."""
    return difference(
        tool, arguments, UNDER_PERF,
        lambda directory: ["perf", "stat", "-x;", "-e", events, "-o", f"{directory}/perf", "--"],
        lambda directory: perf_counts(f"{directory}/perf", events))


def attempt(count, *arguments):
    """The counts, or why there are none."""
    try:
        return count(*arguments), None
    except (RuntimeError, OSError, KeyError, TypeError, ValueError) as error:
        return None, str(error) if isinstance(error, RuntimeError) else repr(error)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", required=True)
    parser.add_argument("--server", default="epoll-et")
    parser.add_argument("--clients", type=int, required=True)
    parser.add_argument("throng")
    parser.add_argument("tools", nargs="+", metavar="TOOL")
    arguments = parser.parse_args()
    allow_descriptors()
    os.sched_setaffinity(0, {SERVER_CPU})
    hardware = counts_hardware()
    for name in arguments.tools:
        tool = TOOLS[name]
        user, why = None, tool.uncounted
        if not why:
            user, why = attempt(by_callgrind, tool, arguments)
        calls, why_not = attempt(by_perf, tool, arguments, "raw_syscalls:sys_enter")
        all_user, kernel = None, None
        if hardware:
            (all_user, kernel), _ = attempt(by_perf, tool, arguments, HARDWARE)
        cells = [f"`{name}`", str(arguments.clients),
                 f"{user[0]:.0f}" if user else f"- ({why})", f"{user[1]:.2f}" if user else "-",
                 f"{calls[0]:.2f}" if calls else f"- ({why_not})",
                 f"{all_user:.0f} + {kernel:.0f} = {all_user + kernel:.0f}" if kernel
                 else "not supported here"]
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
