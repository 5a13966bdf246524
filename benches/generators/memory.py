#!/usr/bin/env python3
"""The most memory that throng load takes, by the number of requests: it should not depend on it.

    memory.py --clients N THRONG REQUESTS...

User space, peak of the resident set (VmHWM), looked at while the load runs; 1000-byte echoes.
"""

import argparse
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from processes import CLIENT_CPU, SERVER_CPU, allow_descriptors
from tools import TOOLS, Work
from trial import with_server

LOOK_EVERY_S = 0.01
LONGEST_S = 1800


def peak_bytes(pid):
    """Of a living process; 0 for one that has ended."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def run(requests, arguments):
    """The peak of one load, and the requests it made."""
    tool = TOOLS["throng"]

    def use(ports, _, directory):
        work = Work(ports, arguments.clients, directory, arguments.throng, requests=requests)
        with open(f"{directory}/printed", "w+", encoding="utf-8") as printed:
            load = subprocess.Popen(["taskset", "-c", str(CLIENT_CPU), *tool.command(work)],
                                    stdout=printed)
            peak, until = 0, time.monotonic() + LONGEST_S
            while load.poll() is None and time.monotonic() < until:
                peak = max(peak, peak_bytes(load.pid))
                time.sleep(LOOK_EVERY_S)
            load.kill()
            load.wait()
            printed.seek(0)
            return peak, tool.read(printed.read(), work)["requests"]

    return with_server(tool, "echo", "epoll-et", arguments.throng, use)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("throng")
    parser.add_argument("requests", type=int, nargs="+")
    arguments = parser.parse_args()
    allow_descriptors()
    os.sched_setaffinity(0, {SERVER_CPU})
    print("| requests | answered | peak of the resident set, KB |")
    print("|---:|---:|---:|")
    for requests in arguments.requests:
        peak, answered = run(requests, arguments)
        print(f"| {requests} | {answered} | {peak / 1e3:.0f} |", flush=True)


if __name__ == "__main__":
    main()
