#!/usr/bin/env python3
"""Compares two load generators by requests per second of their own CPU time, by alternation.

    benches/alternate.py [-p http|echo] [-c CLIENTS,...] [-r ROUNDS] [-s SECONDS] [-m MODEL] [--server THRONG] A B

A and B are KIND=PROGRAM: throng, throng-io-uring, c (generators/c/load-epoll), c-io-uring (peers/c/load-io-uring, echo
only) or wrk. In each round both connect to one
server of throng on CPU 0 and share CPU 1: one is stopped (SIGSTOP) while the other runs, 50 ms each, in random order. So
whatever else the machine does meets both alike. Prints the ratio of A to B: mean, 95 % interval and range of the rounds. With
several numbers of clients, it also prints by which power of that number the CPU time per request grows.
"""

import argparse
import json
import math
import os
import random
import re
import resource
import signal
import subprocess
import threading
import time

SERVER_CPU, CLIENT_CPU = 0, 1
SLICE_S = 0.05


def command(spec, arguments, count, address, seconds):
    kind, program = spec.split("=", 1)
    clients = str(count)
    if kind == "c":
        return [program, address.rsplit(":", 1)[1], "-p", arguments.protocol, "-c", clients, "-d", str(seconds)]
    if kind == "c-io-uring":
        return [program, address.rsplit(":", 1)[1], "-c", clients, "-d", str(seconds)]
    if kind == "wrk":
        return [program, "-t1", "-c", clients, "-d", f"{math.ceil(seconds)}s", "--latency", f"http://{address}/"]
    engine = "io-uring" if kind == "throng-io-uring" else "epoll"
    return [program, "load", address, "--protocol", arguments.protocol, "-c", clients, "-d", f"{seconds}s",
            "--warm-up", "0s", "--engine", engine, "--threads", "1", "--first-reply-timeout", "30s", "--json"]


def replies(spec, text):
    kind = spec.split("=")[0]
    if kind == "wrk":
        return int(re.search(r"(\d+) requests in", text)[1])
    if kind == "c":
        return json.loads(text.strip().splitlines()[-1])["requests"]
    if kind == "c-io-uring":
        return json.loads(text.strip().splitlines()[-1])["verified"]
    return json.loads(text[text.index("{"):])["verified"]


def start(words, cpu):
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                            preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))


def finish(client):
    """What a client printed, and its CPU time."""
    printed = []
    reader = threading.Thread(target=lambda: printed.append(client.stdout.read()))
    reader.start()
    client.send_signal(signal.SIGCONT)
    _, status, usage = os.wait4(client.pid, 0)
    client.returncode = os.waitstatus_to_exitcode(status)
    reader.join()
    return printed[0], usage.ru_utime + usage.ru_stime


def play_round(arguments, count):
    """Requests per CPU second of both, with so many clients each."""
    server = start([arguments.server, "serve", arguments.model, "--protocol", arguments.protocol,
                    "--listen", "127.0.0.1:0", "--backlog", "16384"], SERVER_CPU)
    address = next(found[1] for found in (re.search(r"listening on (\S+)", line) for line in server.stdout) if found)
    both = [arguments.a, arguments.b]
    connecting = 0.3 + count / 12000
    seconds = round(2 * arguments.seconds + 2 * connecting, 1)
    clients, order = [None, None], [0, 1]
    random.shuffle(order)
    try:
        for place in order:
            clients[place] = start(command(both[place], arguments, count, address, seconds), CLIENT_CPU)
            time.sleep(connecting)  # it connects alone
            clients[place].send_signal(signal.SIGSTOP)
        until = time.monotonic() + 1.6 * arguments.seconds
        while time.monotonic() < until:
            random.shuffle(order)
            for place in order:
                clients[place].send_signal(signal.SIGCONT)
                time.sleep(SLICE_S)
                clients[place].send_signal(signal.SIGSTOP)
                if clients[place].returncode is not None:
                    raise SystemExit(f"{both[place]} ended early with {clients[place].returncode}: {clients[place].stdout.read()[-300:]}")
        rates = [0, 0]
        for place in order:
            text, cpu = finish(clients[place])
            rates[place] = replies(both[place], text) / cpu
        return rates
    finally:
        for process in [*clients, server]:
            if process is not None and process.returncode is None:
                process.kill()
                process.wait()


def mean_and_interval(values):
    """Mean, and the ends of its 95 % interval."""
    mean = sum(values) / len(values)
    spread = math.sqrt(sum((value - mean) ** 2 for value in values) / max(1, len(values) - 1) / len(values))
    return mean, mean - 1.96 * spread, mean + 1.96 * spread


def exponent(counts, rates):
    """The slope of CPU time per request over the number of clients, both as logarithms."""
    x, y = [math.log(count) for count in counts], [-math.log(rate) for rate in rates]
    x_mean, y_mean = sum(x) / len(x), sum(y) / len(y)
    return sum((one - x_mean) * (other - y_mean) for one, other in zip(x, y)) / sum((one - x_mean) ** 2 for one in x)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("a")
    parser.add_argument("b")
    parser.add_argument("-p", dest="protocol", default="http", choices=["http", "echo"])
    parser.add_argument("-c", dest="clients", type=lambda text: [int(one) for one in text.split(",")], default=[50])
    parser.add_argument("-r", dest="rounds", type=int, default=5)
    parser.add_argument("-s", dest="seconds", type=float, default=5, help="of each generator in a round")
    parser.add_argument("-m", dest="model", default="epoll-et", help="of the server")
    parser.add_argument("--server", default="target/release/throng", help="the throng that serves")
    arguments = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    rates = {count: [] for count in arguments.clients}
    for number in range(arguments.rounds):
        for count in random.sample(arguments.clients, len(arguments.clients)):
            a, b = play_round(arguments, count)
            rates[count].append((a, b))
            print(f"round {number + 1}, {count} clients: {a:.0f} and {b:.0f} requests per CPU second, ratio {a / b:.3f}", flush=True)
    for count, both in rates.items():
        ratios = [math.log(a / b) for a, b in both]
        mean, low, high = map(math.exp, mean_and_interval(ratios))
        print(f"{count} clients, A to B: {mean:.3f} ({low:.3f} to {high:.3f}), "
              f"range {math.exp(min(ratios)):.3f} to {math.exp(max(ratios)):.3f}, {len(ratios)} rounds")
    if len(rates) > 1:
        slopes = [[exponent(rates, [both[number][place] for both in rates.values()]) for number in range(arguments.rounds)]
                  for place in (0, 1)]
        for name, values in [("A", slopes[0]), ("B", slopes[1]), ("A minus B", [a - b for a, b in zip(*slopes)])]:
            mean, low, high = mean_and_interval(values)
            print(f"exponent of CPU time per request, {name}: {mean:.3f} ({low:.3f} to {high:.3f})")


if __name__ == "__main__":
    main()
