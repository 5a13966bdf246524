#!/usr/bin/env python3
"""Numbers of throng beside the same numbers from programs that know nothing of it.

  benches/cross_checks.py [-c CLIENTS] [-n REQUESTS] [-r ROUNDS]

The server is nginx with one worker, on loopback. Needs root, nginx, wrk, strace, ss, tcpdump and tshark. THRONG names
the program (default: target/release/throng). Counts must be equal; the script ends with 1 where one is not. Times and
rates of two programs differ with the machine: they are printed with their ratio.

A small run: benches/cross_checks.py -n 2000 -r 1
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from nginx import free_port, start

THRONG = os.environ.get("THRONG", "target/release/throng")
HTTP = """log_format plain '$connection $status $bytes_sent';
  access_log access.log plain;"""


class Nginx:
    """nginx with one worker, in a directory of its own."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.process, self.port = start(directory, 1000, HTTP)
        self.url = f"http://127.0.0.1:{self.port}/"
        for _ in range(100):
            time.sleep(0.05)
            self.worker = children(self.process.pid)
            if self.worker:
                break
        self.worker = self.worker[0]

    def log(self):
        """The lines of the access log since the last call, once nginx has written them."""
        path = self.directory / "access.log"
        lines = [line.split() for line in path.read_text().splitlines()]
        path.write_text("")
        return lines

    def cpu_s(self):
        fields = pathlib.Path(f"/proc/{self.worker}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self):
        self.process.terminate()
        self.process.wait()


def children(pid):
    return [int(one) for one in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def output(command, **more):
    return subprocess.run(command, capture_output=True, text=True, check=True, **more).stdout


def load(url, *more):
    return json.loads(output([THRONG, "load", url, "--json", "--threads", "1", *more]))


def measured(url, clients, directory, *more):
    """The metrics of one server from `throng measure`."""
    record = f"{directory}/record{time.monotonic_ns()}"
    command = [THRONG, "measure", url, "--clients", str(clients), "--allow-rough", "--control", "none", "-o", record, *more]
    output(command)
    row = json.loads(pathlib.Path(record, "summary.json").read_text())["rows"][0]
    return {name: metric["value"] for name, metric in row["metrics"].items()}


def wrk(url, clients):
    text = output(["wrk", "-t1", "-c", str(clients), "-d", "2s", "--latency", url])
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", text)[1])
    units = {"us": 1, "ms": 1e3, "s": 1e6}

    def percentile(name):
        found = re.search(rf"^\s+{name}%\s+([\d.]+)(us|ms|s)", text, re.M)
        return float(found[1]) * units[found[2]]

    return rate, percentile(50), percentile(99)


def strace_calls(pid, run):
    """System calls of a process while something runs."""
    with tempfile.NamedTemporaryFile() as counts:
        tracer = subprocess.Popen(["strace", "-c", "-f", "-p", str(pid), "-o", counts.name], stderr=subprocess.DEVNULL)
        while f"TracerPid:\t{tracer.pid}" not in pathlib.Path(f"/proc/{pid}/status").read_text():
            time.sleep(0.01)
        run()
        tracer.send_signal(2)
        tracer.wait()
        # "100.00 0.05 5 10007 total", with a column of errors where there were any.
        return int(pathlib.Path(counts.name).read_text().splitlines()[-1].split()[3])


def while_running(run, look):
    """What `look` gave many times while something ran."""
    seen, over = [], threading.Event()

    def watch():
        while not over.is_set():
            seen.append(look())
            time.sleep(0.02)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        result = run()
    finally:
        over.set()
        watcher.join()
    return result, seen


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-c", "--clients", type=int, default=50)
    parser.add_argument("-n", "--requests", type=int, default=100_000)
    parser.add_argument("-r", "--rounds", type=int, default=5)
    options = parser.parse_args()
    rows = []

    def add(number, throng, other, program, exact=False):
        rows.append((number, throng, other, program, exact))
        print(f"{number}: throng {throng:.6g}, {program} {other:.6g}", flush=True)

    with tempfile.TemporaryDirectory() as directory:
        nginx = Nginx(directory)
        try:
            compare(nginx, options, directory, add)
        finally:
            nginx.end()
    print("\n| number | throng | other program | ratio | how it was counted |\n|---|--:|--:|--:|---|")
    wrong = 0
    for number, throng, other, program, exact in rows:
        wrong += exact and throng != other
        print(f"| {number} | {throng:,.6g} | {other:,.6g} | {throng / other if other else float('nan'):.3f} | {program} |")
    sys.exit(1 if wrong else 0)


def compare(nginx, options, directory, add):
    url, clients, count = nginx.url, str(options.clients), str(options.requests)
    nginx.log()
    one = load(url, "-c", clients, "-n", count)
    time.sleep(0.2)
    log = nginx.log()
    add("replies", one["verified"], sum(line[1] == "200" for line in log), "nginx access log", True)
    add("connections", one["connections"], len({line[0] for line in log}), "nginx access log", True)
    add("bytes received", one["window"]["bytes_received"], sum(int(line[2]) for line in log), "nginx access log", True)

    capture = f"{directory}/packets.pcap"
    dump = subprocess.Popen(["tcpdump", "-i", "lo", "-s", "96", "-B", "65536", "-w", capture, f"tcp port {nginx.port}"], stderr=subprocess.PIPE, text=True)
    dump.stderr.readline()
    load(url, "-c", clients, "-n", str(min(options.requests, 5000)))
    time.sleep(1)
    dump.terminate()
    dump.wait()
    flows = json.loads(output([THRONG, "flows", "--json", capture]))["flows"]
    packets = tshark(capture)
    add("flows", len(flows), len({packet[0] for packet in packets}), "tshark", True)
    sides = ("client", "server")
    add("packets", sum(flow[f"packets_by_{side}"] for flow in flows for side in sides), len(packets), "tshark", True)
    payload = sum(flow[f"payload_bytes_by_{side}"] for flow in flows for side in sides)
    add("payload bytes", payload, sum(int(packet[1]) for packet in packets), "tshark", True)

    rates, own = [], []
    for _ in range(options.rounds):
        rates.append(wrk(url, options.clients))
        one = load(url, "-c", clients, "-d", "2s", "--warm-up", "0s")
        times = one["service_time"]
        own.append((one["window"]["replies_per_s"], times["p50_us"], times["p99_us"]))
    for place, name in enumerate(("requests/s", "p50, us", "p99, us")):
        of = [statistics.median(one[place] for one in both) for both in (own, rates)]
        add(name, *of, f"wrk, median of {options.rounds} rounds each")

    metrics, seen = while_running(
        lambda: measured(url, options.clients, directory, "-d", "2s", "--runs", "1", "--probes", "all"),
        lambda: (established(nginx.port), pss(nginx.worker)),
    )
    add("most connections", metrics["established_max"], max(one[0] for one in seen), "ss, every 20 ms", True)
    # throng counts the processes of nginx, and reads their memory with all clients connected.
    master = pss(nginx.process.pid)
    with_all = [one[1] for one in seen if one[0] == options.clients]
    add("memory, bytes", metrics["server_pss_bytes"], master + statistics.median(with_all), "smaps_rollup")

    before = nginx.cpu_s()
    one = load(url, "-c", clients, "-d", "2s", "--warm-up", "0s")
    cpu_us = (nginx.cpu_s() - before) * 1e6 / one["verified"]
    add("server CPU/request, us", metrics["server_cpu_us_per_request"], cpu_us, "/proc/PID/stat")

    # One request at a time: with many clients, how many replies a turn of the loop has depends on the speed.
    http = ("--protocol", "http")
    alone = measured("epoll", 1, directory, "-d", "1s", "--runs", "1", "--probes", "cpu,switches,syscalls", *http)
    port = free_port()
    server = subprocess.Popen([THRONG, "serve", "epoll", "--listen", f"127.0.0.1:{port}", *http], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(0.5)
        requests = [f"http://127.0.0.1:{port}/", "-c", "1", "-n", "2000"]
        before = switches(server.pid)
        load(*requests)
        slept = switches(server.pid) - before
        calls = strace_calls(server.pid, lambda: load(*requests))
    finally:
        server.terminate()
        server.wait()
    slept_per_request = alone["server_voluntary_switches_per_request"]
    add("voluntary switches/request of epoll, 1 client", slept_per_request, slept / 2000, "/proc/PID/status")
    add("system calls/request of epoll, 1 client", alone["server_syscalls_per_request"], calls / 2000, "strace -c")


def switches(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", text, re.M)[1])


def established(port):
    return len(output(["ss", "-Htn", "state", "established", f"sport = :{port}"]).splitlines())


def pss(pid):
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(re.search(r"^Pss:\s+(\d+) kB", text, re.M)[1]) * 1024


def tshark(capture):
    """Stream and length of payload of each packet."""
    command = ["tshark", "-r", capture, "-T", "fields", "-e", "tcp.stream", "-e", "tcp.len"]
    text = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
    return [line.split("\t") for line in text.splitlines()]


if __name__ == "__main__":
    main()
