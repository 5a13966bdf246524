#!/usr/bin/env python3
"""Response times of throng and of wrk2, against a server with planted stalls.

    stall.py [--stalls "100 700"] [--rate 2031] [--clients 50] [--seconds 20] [--rounds 3] THRONG

The server answers at once, but stops for some milliseconds in each second. Both tools ask at a
constant rate and count from when a request was due, so both have to find the stall whole. Rows
are medians over the rounds, in which both have their turn in a random order. "Planted" is what a
perfect observer of requests at any time sees of the stall itself. Where it does not reach a percentile,
that shows the tools instead: wrk2's timers have whole milliseconds.

The rate must not divide evenly among the connections: each of wrk2's asks at equal steps, about all
at once, and with a whole number of steps a second they always come at the same point of the stall.
"""

import argparse
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from processes import CLIENT_CPU, SERVER_CPU, end, limit, listening_address
from tools import HERE, microseconds

PERIOD_MS = 1000
CALIBRATION_S = 10  # of wrk2, before its times count; it waits 5 ms more for each client
AGREED = 0.05
EDGE_MS = 10  # nearer to the edge of the stall, what a request costs decides
PERCENTILES = {"p50_us": "50", "p90_us": "90", "p99_us": "99", "p999_us": "99.9"}
START_LIMIT_S, STOP_LIMIT_S, SPARE_S = 10, 10, 60


def run(command, seconds):
    """What a generator says."""
    process = subprocess.Popen(["taskset", "-c", str(CLIENT_CPU), *command], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    limit(process.pid, int(seconds) + SPARE_S)
    text = process.communicate()[0]
    signal.alarm(0)
    if process.returncode != 0:
        lines = text.strip().splitlines() or ["no output"]
        raise RuntimeError(next((line for line in lines if "error" in line), lines[-1]))
    return text


def ask_wrk2(address, arguments):
    seconds = arguments.seconds + CALIBRATION_S + round(arguments.clients * 0.005)
    text = run(["wrk2", "-t1", f"-c{arguments.clients}", f"-R{arguments.rate}", f"-d{seconds}s",
                "--latency", f"http://{address}/"], seconds)
    times = {float(share): microseconds(time)
             for share, time in re.findall(r"\n +([\d.]+)% +(\S+)", text)}
    return {name: times[float(share)] for name, share in PERCENTILES.items()}


def ask_throng(address, arguments):
    text = run([arguments.throng, "load", f"http://{address}/", "--threads", "1", "--cpus",
                str(CLIENT_CPU), "-c", str(arguments.clients), "--rate", str(arguments.rate),
                "--arrival", "constant", "-d", f"{arguments.seconds}s", "--json"],
               arguments.seconds)
    open_loop = json.loads(text).get("open_loop")
    if open_loop is None:
        raise RuntimeError("throng reported no response times")
    return {name: open_loop["response_time"][name] for name in PERCENTILES}


ASK = {"wrk2": ask_wrk2, "throng": ask_throng}


def measure(stall_ms, arguments, chance):
    """The percentiles of each tool in each round, and why some have none."""
    found, failed = {name: [] for name in ASK}, {}
    for _ in range(arguments.rounds):
        for name in chance.sample(list(ASK), len(ASK)):
            server = subprocess.Popen(
                ["taskset", "-c", str(SERVER_CPU), f"{HERE}/c/stalling", "0", str(stall_ms),
                 str(PERIOD_MS)], stdout=subprocess.PIPE, text=True)
            try:
                limit(server.pid, START_LIMIT_S)
                address = listening_address(server)
                signal.alarm(0)
                found[name].append(ASK[name](address, arguments))
            except (RuntimeError, OSError, KeyError, ValueError) as error:
                failed[name] = str(error) if isinstance(error, RuntimeError) else repr(error)
            finally:
                end(server, STOP_LIMIT_S)
    return found, failed


def table(stall_ms, found, failed):
    """Prints one stall's; whether all percentiles that it reaches agree."""
    print(f"## A stall of {stall_ms} ms in each second\n")
    print("| percentile | planted, ms | wrk2, ms | throng, ms | throng to wrk2 | |")
    print("|---:|---:|---:|---:|---:|---|")
    agree = True
    for name, share in PERCENTILES.items():
        medians = [statistics.median(times[name] for times in found[tool]) / 1e3
                   if found[tool] else None for tool in ASK]
        cells = ["-" if value is None else f"{value:.2f}" for value in medians]
        planted = stall_ms - (1 - float(share) / 100) * PERIOD_MS
        cells.insert(0, f"{max(0, planted):.0f}")
        difference, verdict = "-", ""
        if None not in medians:
            apart = medians[1] / medians[0] - 1
            difference = f"{apart:+.1%}"
            if planted < EDGE_MS:
                verdict = "not reached by the stall"
            else:
                verdict = "agree" if abs(apart) <= AGREED else "differ"
                agree = agree and verdict == "agree"
        print(f"| {share} | {' | '.join(cells)} | {difference} | {verdict} |")
    for name, why in failed.items():
        print(f"\n`{name}` is unavailable: {why}")
        agree = False
    print()
    return agree


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stalls", default="100 700")
    parser.add_argument("--rate", type=int, default=2031)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("throng")
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    print(f"{arguments.rate} requests/s over {arguments.clients} connections, {arguments.seconds} s, "
          f"medians of {arguments.rounds} rounds; agreed: within {AGREED:.0%}.\n")
    agree = [table(stall_ms, *measure(stall_ms, arguments, chance))
             for stall_ms in map(int, arguments.stalls.split())]
    return 0 if all(agree) else 1


if __name__ == "__main__":
    sys.exit(main())
