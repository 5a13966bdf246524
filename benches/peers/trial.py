#!/usr/bin/env python3
"""One server under one load, once; prints what came of it as a line of JSON.

    trial.py --name NAME --kind KIND --round N --clients N --duration 1.5s [--load PROGRAM]
             THRONG SERVER [ARGUMENT ...]

SERVER must print "listening on ADDRESS" and end on SIGTERM. It runs on CPU 0, the load on CPU 1.
The load is that of THRONG, or PROGRAM PORT -c N -d TIME, which speaks to us the same way.
It tells its phases, so the server's CPU time is that of the steady part, over the replies of
the steady part, from the CPU clock of each process of its tree (ticks of 10 ms would be too coarse
for a thousand children).
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from processes import (CLIENT_CPU, SERVER_CPU, allow_descriptors, busy_seconds, cpu_seconds, end,
                       limit, listening_address, tree)

START_LIMIT_S, STOP_LIMIT_S, LOAD_LIMIT_S = 10, 10, 120


def measure(arguments, address):
    """Runs the load; gives its result, with the server's CPU time in the steady part."""
    if arguments.load:
        command = [arguments.load, address.rpartition(":")[2]]
    else:
        command = [arguments.throng, "load", address, "--controlled", "--cpus", str(CLIENT_CPU),
                   "--patience", "10s"]
    command += ["-c", str(arguments.clients), "-d", arguments.duration]
    load = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    limit(load.pid, LOAD_LIMIT_S)
    pids, before, after, result = [], None, None, None
    for line in load.stdout:
        event = json.loads(line)
        phase = event.get("phase")
        if phase == "warm-up":
            pids = tree(arguments.server.pid)
        elif phase == "measure":
            before = cpu_seconds(pids)
            began, all_before = time.monotonic(), busy_seconds() - cpu_seconds([load.pid])
        elif phase == "drain":
            after = cpu_seconds(pids)
            all_after = busy_seconds() - cpu_seconds([load.pid])
            elapsed = time.monotonic() - began
        elif phase is None:
            result = event
        if phase in ("warm-up", "idle"):
            load.stdin.write("\n")
            load.stdin.flush()
    signal.alarm(0)
    if load.wait() != 0 or result is None or before is None or after is None:
        raise RuntimeError("the load failed")
    result["server_cpu_s"] = after - before
    result["others"] = max(0, all_after - all_before - (after - before)) / elapsed / 2
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", required=True)
    parser.add_argument("--kind", required=True)
    parser.add_argument("--round", type=int, required=True)
    parser.add_argument("--clients", type=int, required=True)
    parser.add_argument("--duration", required=True)
    parser.add_argument("--load")
    parser.add_argument("throng")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    allow_descriptors()
    os.sched_setaffinity(0, {CLIENT_CPU})
    trial = {"name": arguments.name, "kind": arguments.kind, "round": arguments.round,
             "clients": arguments.clients,
             "load": os.path.basename(arguments.load or "throng load")}
    arguments.server = server = subprocess.Popen(
        ["taskset", "-c", str(SERVER_CPU), *arguments.command], stdout=subprocess.PIPE, text=True)
    try:
        limit(server.pid, START_LIMIT_S)
        address = listening_address(server)
        signal.alarm(0)
        load = measure(arguments, address)
        window, fairness = load["window"], load.get("fairness")
        if fairness is None:
            raise RuntimeError("no reply came in the steady part")
        trial |= {
            "replies": window["replies"],
            "rate_per_s": window["replies_per_s"],
            "server_cpu_s": load["server_cpu_s"],
            "others": load["others"],
            "server_busy": load["server_cpu_s"] / window["duration_s"],
            "per_cpu_second": window["replies"] / load["server_cpu_s"],
            "jain": fairness["jain"],
            "least": fairness["min"],
            "most": fairness["max"],
            "first_answer_max_ms": load["first_answer"]["max_us"] / 1e3,
            "unserved": load["clients"] - load["served"],
            "errors": load["errors"],
        }
    except (RuntimeError, KeyError, TypeError, ZeroDivisionError, ValueError) as error:
        trial["failure"] = str(error) if isinstance(error, RuntimeError) else repr(error)
    finally:
        end(server, STOP_LIMIT_S)
    print(json.dumps(trial))
    return 1 if "failure" in trial else 0


if __name__ == "__main__":
    sys.exit(main())
