#!/usr/bin/env python3
"""Compares two load generators by requests per second of their own CPU time, by alternation.

    benches/alternate.py [-p http|http2|echo] [--streams N] [-c CLIENTS,...] [-r ROUNDS] [--within PERCENT] [-s SECONDS]
                         [-m MODEL [-w LOOPS]] [--server THRONG] A B

A and B are KIND=PROGRAM: throng, throng-io-uring, c (generators/c/load-epoll, load-http2), c-io-uring (peers/c/load-io-uring, echo
only) or wrk. In each round both connect to one server of throng on CPU 0 and share CPU 1: one is stopped (SIGSTOP) while
the other runs, 50 ms each, in random order. So whatever else the machine does meets both alike. Connecting does not
count, except for wrk. A round in which others, or the host, used more than a tenth of a CPU is repeated;
with as many of these as rounds, it gives up (exit code 4). --within: further rounds, at most five times as many, until
the 95 % interval is within that. Prints the ratio of A to B: mean, 95 % interval and range of the rounds. With
several numbers of clients, it also prints by which power of that number the CPU time per request grows.
"""

import argparse
import glob
import json
import math
import os
import random
import re
import resource
import signal
import subprocess
import time

SERVER_CPU, CLIENT_CPU = 0, 1
SLICE_S = 0.05
# CPUs that others and the host may use in a round.
OTHERS = 0.1
# Clients of one descriptor table: of a process of `c`, of a thread of throng.
CLIENTS_EACH = 15_000


def commands(spec, arguments, count, address, seconds):
    """The processes of a generator: one, or of `c` as many as have descriptors for its clients."""
    kind, program = spec.split("=", 1)
    if kind == "c":
        parts = math.ceil(count / CLIENTS_EACH)
        shares = [count // parts + (part < count % parts) for part in range(parts)]
        words = [program, address.rsplit(":", 1)[1], "-d", str(seconds), "-g"]
        if arguments.protocol == "http2":
            return [[*words, "-c", str(count), "-m", str(arguments.streams)]]
        words += ["-p", arguments.protocol]
        return [[*words, "-c", str(share), "-b", f"127.0.1.{part + 1}"] for part, share in enumerate(shares)]
    if kind == "c-io-uring":
        return [[program, address.rsplit(":", 1)[1], "-c", str(count), "-d", str(seconds)]]
    if kind == "wrk":
        return [[program, "-t1", "-c", str(count), "-d", f"{math.ceil(seconds)}s", "--latency", f"http://{address}/"]]
    engine = "io-uring" if kind == "throng-io-uring" else "epoll"
    return [[program, "load", address, "--protocol", arguments.protocol, "-c", str(count), "-d", f"{seconds}s",
             "--warm-up", "0s", "--engine", engine, "--threads", str(math.ceil(count / CLIENTS_EACH)),
             "--first-reply-timeout", "60s", "--pipeline", str(arguments.streams), "--controlled"]]


def start(words, cpu):
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                            preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))


class Generator:
    """A load generator, stopped except in its slices."""

    def __init__(self, spec, arguments, count, address, seconds):
        self.spec, self.count = spec, count
        self.kind = spec.split("=")[0]
        self.processes = [start(words, CLIENT_CPU) for words in commands(spec, arguments, count, address, seconds)]
        # Requests and CPU time from before its slices.
        self.requests, self.cpu = 0, 0

    def connect(self):
        """Waits until all clients are connected. wrk does not say so, and begins at once."""
        if self.kind == "c":
            self.read_until("ready")
        elif self.kind != "wrk":
            self.read_until('"phase":"warm-up"')
            self.requests, self.cpu = self.count, self.cpu_time()
            if self.kind == "c-io-uring":
                self.tell("\n")
        else:
            time.sleep(0.3 + self.count / 12000)

    def read_until(self, text):
        for process in self.processes:
            while text not in (line := process.stdout.readline()):
                if not line:
                    raise SystemExit(f"{self.spec} ended early with {process.wait()}")

    def cpu_time(self):
        return sum(cpu_clock(process.pid) for process in self.processes)

    def tell(self, line):
        for process in self.processes:
            process.stdin.write(line)
            process.stdin.flush()

    def signal(self, number):
        for process in self.processes:
            process.send_signal(number)

    def finish(self):
        """Its requests per second of CPU time, in its slices."""
        self.signal(signal.SIGCONT)
        if self.kind.startswith("throng"):
            self.read_until('"phase":"idle"')
            self.cpu = self.cpu_time() - self.cpu
            self.tell("\n")
        elif self.kind == "c-io-uring":
            self.tell("\n")
        ends = [self.end(process) for process in self.processes]
        if self.kind == "c":
            results = [json.loads(text.strip().splitlines()[-1]) for text, _ in ends]
            return sum(one["requests"] for one in results) / sum(one["cpu_s"] for one in results)
        (text, cpu), = ends
        if self.kind == "wrk":
            return int(re.search(r"(\d+) requests in", text)[1]) / cpu
        last = json.loads(text.strip().splitlines()[-1])
        if self.kind == "c-io-uring":
            return (last["verified"] - self.requests) / (cpu - self.cpu)
        return (last["result"]["verified"] - self.requests) / self.cpu

    @staticmethod
    def end(process):
        """The rest of its output, and its whole CPU time."""
        text = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        return text, usage.ru_utime + usage.ru_stime


def busy_seconds():
    """The CPU time of everything on this machine, and that which the host took."""
    with open("/proc/stat") as stat:
        user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, stat.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def cpu_clock(pid):
    """The CPU time of a process, by the clock that clock_getcpuclockid(3) makes."""
    return time.clock_gettime((~pid << 3) | 2)


def packet_seconds():
    """The CPU time of the kernel's threads that handle packets when there are many."""
    ticks = 0
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            name, fields = open(path).read().split("(", 1)[1].rsplit(") ", 1)
        except OSError:
            continue  # it has ended
        if name.startswith("ksoftirqd/"):
            ticks += sum(map(int, fields.split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def play_round(arguments, count):
    """Requests per CPU second of both, with so many clients each; which connected first; CPUs that others used."""
    signal.alarm(300)  # a generator that hangs
    loops = ["--own-descriptors", "--workers", str(arguments.workers)] if arguments.workers else []
    server = start([arguments.server, "serve", arguments.model, "--protocol", arguments.protocol,
                    "--listen", "127.0.0.1:0", "--backlog", "16384", *loops], SERVER_CPU)
    address = next(found[1] for found in (re.search(r"listening on (\S+)", line) for line in server.stdout) if found)
    seconds = round(2 * arguments.seconds, 1)
    both, order = [None, None], [0, 1]
    random.shuffle(order)
    first = order[0]
    try:
        for place in order:
            both[place] = Generator([arguments.a, arguments.b][place], arguments, count, address, seconds)
            both[place].connect()
            both[place].signal(signal.SIGSTOP)
        for generator in both:
            if generator.kind == "c" or generator.kind.startswith("throng"):
                generator.tell("\n")

        def others():
            own = cpu_clock(server.pid) + sum(generator.cpu_time() for generator in both) + packet_seconds()
            return busy_seconds() - own

        began, before = time.monotonic(), others()
        until = began + 1.6 * arguments.seconds
        while time.monotonic() < until:
            random.shuffle(order)
            for place in order:
                both[place].signal(signal.SIGCONT)
                time.sleep(SLICE_S)
                both[place].signal(signal.SIGSTOP)
        used = (others() - before) / (time.monotonic() - began)
        rates = [0, 0]
        for place in order:
            rates[place] = both[place].finish()
        return rates, "AB"[first], used
    finally:
        processes = [process for generator in both if generator is not None for process in generator.processes]
        for process in [*processes, server]:
            if process.returncode is None:
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
    parser.add_argument("-p", dest="protocol", default="http", choices=["http", "http2", "echo"])
    parser.add_argument("--streams", type=int, default=1, help="requests that a client has open")
    parser.add_argument("-c", dest="clients", type=lambda text: [int(one) for one in text.split(",")], default=[50])
    parser.add_argument("-r", dest="rounds", type=int, default=5)
    parser.add_argument("--within", type=float, help="half the width of the interval, in percent")
    parser.add_argument("-s", dest="seconds", type=float, default=5, help="of each generator in a round")
    parser.add_argument("-m", dest="model", default="epoll-et", help="of the server")
    parser.add_argument("-w", dest="workers", type=int, help="loops of `reactors`, each with descriptors of its own")
    parser.add_argument("--server", default="target/release/throng", help="the throng that serves")
    arguments = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    rates = {count: [] for count in arguments.clients}
    disturbed = 0

    def is_enough(count):
        done = len(rates[count])
        if done < arguments.rounds or arguments.within is None or done >= 5 * arguments.rounds:
            return done >= arguments.rounds
        _, low, high = mean_and_interval([math.log(a / b) for a, b in rates[count]])
        return (high - low) / 2 <= arguments.within / 100

    while open_counts := [count for count in arguments.clients if not is_enough(count)]:
        for count in random.sample(open_counts, len(open_counts)):
            (a, b), first, used = play_round(arguments, count)
            line = (f"{count} clients: {a:.0f} and {b:.0f} requests per CPU second, ratio {a / b:.3f}, "
                    f"{first} connected first, others used {100 * used:.0f} % of a CPU")
            if used <= OTHERS:
                rates[count].append((a, b))
                print(f"round {len(rates[count])}, {line}", flush=True)
                continue
            disturbed += 1
            print(f"disturbed, {line}", flush=True)
            if disturbed >= arguments.rounds:
                print(f"this machine is too busy: others disturbed {disturbed} rounds")
                raise SystemExit(4)
    for count, both in rates.items():
        ratios = [math.log(a / b) for a, b in both]
        mean, low, high = map(math.exp, mean_and_interval(ratios))
        print(f"{count} clients, A to B: {mean:.3f} ({low:.3f} to {high:.3f}), "
              f"range {math.exp(min(ratios)):.3f} to {math.exp(max(ratios)):.3f}, {len(ratios)} rounds")
    if len(rates) > 1:
        rounds = min(map(len, rates.values()))
        slopes = [[exponent(rates, [both[number][place] for both in rates.values()]) for number in range(rounds)]
                  for place in (0, 1)]
        for name, values in [("A", slopes[0]), ("B", slopes[1]), ("A minus B", [a - b for a, b in zip(*slopes)])]:
            mean, low, high = mean_and_interval(values)
            print(f"exponent of CPU time per request, {name}: {mean:.3f} ({low:.3f} to {high:.3f})")


if __name__ == "__main__":
    main()
