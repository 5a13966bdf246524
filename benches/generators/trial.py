#!/usr/bin/env python3
"""One load generator against one server, once; prints what came of it as a line of JSON.

    trial.py --tool NAME --target TARGET [--server MODEL] [--name NAME]
             --clients N --seconds S [--round N] THRONG

The server runs on CPU 0, the generator on CPU 1, with one thread. Its CPU time is that of its whole
life, from wait4(), over all answered requests: of throng these are more than in
its own figure, whose warm-up does not count. How busy both sides were, and what others took of
the two CPUs, is watched from half a second after the start on.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import servers
from processes import (CLIENT_CPU, SERVER_CPU, allow_descriptors, busy_seconds, cpu_seconds, limit,
                       tree)
from tools import TOOLS, Work

STEADY_AFTER_S = 0.5
LOOK_EVERY_S = 0.25
SPARE_S = 60  # beyond its time, before a generator is ended


def server_kind(tool, target):
    """The server of a target, or the tool's own."""
    if tool.server and target == "echo":
        return tool.server
    protocol, _, program = target.partition("-")
    return {"nginx": "nginx" if protocol == "http" else "nginx-http2",
            "nghttpd": "nghttpd"}.get(program, protocol_of(target))


def protocol_of(target):
    """The protocol of a target, without its number of streams."""
    return target.partition("-")[0].partition("x")[0]


def streams_of(target):
    """How many streams a connection of a target has: those of http2x32-nginx are 32."""
    return int(target.partition("-")[0].partition("x")[2] or 1)


def watch(client, servers_pids):
    """Until the client has ended; what it used, and how busy the CPUs were."""
    began, looks = time.monotonic(), []
    while True:
        pid, status, usage = os.wait4(client.pid, os.WNOHANG)
        if pid:
            break
        if time.monotonic() >= began + STEADY_AFTER_S:
            looks.append((time.monotonic(), cpu_seconds([client.pid]), cpu_seconds(servers_pids),
                          busy_seconds()))
        time.sleep(LOOK_EVERY_S)
    client.returncode = os.waitstatus_to_exitcode(status)
    found = {"client_cpu_s": usage.ru_utime + usage.ru_stime}
    # The last sample may be from after the end, when no requests were sent.
    if len(looks) > 2:
        elapsed, by_client, by_server, busy = (last - first for first, last
                                               in zip(looks[0], looks[-2]))
        found |= {"client_busy": by_client / elapsed, "server_busy": by_server / elapsed,
                  "others": max(0, busy - by_client - by_server) / elapsed / 2}
    return found


def run_client(tool, work, server_pids, before=()):
    """One load; returns the output of the tool and its use of resources. `before` runs it, as perf does."""
    with tempfile.TemporaryFile("w+") as printed, tempfile.TemporaryFile("w+") as complained:
        client = subprocess.Popen(
            ["taskset", "-c", str(CLIENT_CPU), *before, *tool.command(work)],
            stdin=subprocess.DEVNULL, stdout=printed, stderr=complained,
            env=os.environ | tool.environment)
        limit(client.pid, int(work.seconds or 0) + SPARE_S * (5 if before else 1))
        used = watch(client, server_pids)
        signal.alarm(0)
        printed.seek(0)
        complained.seek(0)
        text, complaint = printed.read(), complained.read()
    if client.returncode != 0:
        lines = (complaint + text).strip().splitlines() or [f"it ended with {client.returncode}"]
        raise RuntimeError(next((line for line in lines if "error" in line.lower()), lines[-1]))
    return tool.read(text, work) | used


def with_server(tool, target, model, throng, use):
    """What `use` gives, with a server running: use(ports, pids, directory)."""
    server = servers.start(server_kind(tool, target), model, throng)
    try:
        return use(server.ports, tree(server.process.pid), server.directory)
    finally:
        server.stop()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True, choices=TOOLS)
    parser.add_argument("--target", required=True)
    parser.add_argument("--server", default="epoll-et")
    parser.add_argument("--name")
    parser.add_argument("--clients", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--round", type=int, default=1)
    parser.add_argument("throng")
    arguments = parser.parse_args()
    allow_descriptors()
    os.sched_setaffinity(0, {SERVER_CPU})
    tool = TOOLS[arguments.tool]
    trial = {"name": arguments.name or arguments.tool, "target": arguments.target,
             "server": server_kind(tool, arguments.target), "round": arguments.round,
             "clients": arguments.clients}

    def use(ports, pids, directory):
        work = Work(ports, arguments.clients, directory, arguments.throng,
                    seconds=arguments.seconds, protocol=protocol_of(arguments.target),
                    streams=streams_of(arguments.target))
        return run_client(tool, work, pids)

    try:
        trial |= with_server(tool, arguments.target, arguments.server, arguments.throng, use)
        trial["per_cpu_second"] = trial["requests"] / trial["client_cpu_s"]
    except (RuntimeError, OSError, KeyError, TypeError, ZeroDivisionError, ValueError) as error:
        trial["failure"] = str(error) if isinstance(error, RuntimeError) else repr(error)
    print(json.dumps(trial))
    return 1 if "failure" in trial else 0


if __name__ == "__main__":
    sys.exit(main())
