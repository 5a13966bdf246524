#!/usr/bin/env python3
"""What the view on a terminal costs a measurement: the same runs in turn with the view (standard error is a
terminal of 80 columns that is read at once) and without (it is a pipe).

    benches/view.py [PROGRAM] [PAIRS]

Prints for each number of clients the medians of both, and the median of the ratios of neighbours with the range of
the middle half.

    benches/view.py --pages [PROGRAM] [RUNS]

What the pages of `throng view` take: time, size and memory with a directory of 10, 100, ... up to RUNS runs (1000), each a
copy of a reference run of 15 models under 4 loads."""

import fcntl
import json
import os
import pathlib
import pty
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import urllib.error
import urllib.request


def pages(program, most):
    reference = pathlib.Path(__file__).resolve().parent.parent / "results/2026-11-22-vm/models"
    print(f"{'runs':>6} {'page':<26}{'first, ms':>10}{'again, ms':>10}{'size, kB':>10}{'MiB':>10}")
    runs = 10
    while runs <= most:
        with tempfile.TemporaryDirectory() as directory:
            directory = pathlib.Path(directory)
            one = directory / "vm/run-0"
            one.mkdir(parents=True)
            for file in ["run.json", "trials.jsonl.gz"]:
                (one / file).write_bytes((reference / file).read_bytes())
            subprocess.run([program, "report", one], check=True, capture_output=True)
            for number in range(1, runs):
                other = directory / f"vm/run-{number}"
                other.mkdir()
                for file in ["run.json", "trials.jsonl.gz", "summary.json", "report.html"]:
                    os.link(one / file, other / file)
            # Older versions list what is directly in the directory.
            process = subprocess.Popen([program, "view", directory / "vm"], stdout=subprocess.PIPE, text=True)
            try:
                address = process.stdout.readline().split()[-1].rstrip("/")

                def get(path):
                    began = time.perf_counter()
                    with urllib.request.urlopen(address + path) as answer:
                        size = len(answer.read())
                    return 1e3 * (time.perf_counter() - began), size

                for path in ["/", "/runs.json", "/run/run-0/", "/run/run-0/trials", "/run/run-0/trial?index=3", "/history?server=epoll"]:
                    try:
                        first, size = get(path)
                        again = statistics.median(get(path)[0] for _ in range(5))
                    except urllib.error.HTTPError as error:
                        print(f"{runs:>6} {path:<26}{error.code}")
                        continue
                    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
                    memory = int(status.split("VmRSS:")[1].split()[0]) / 1024
                    print(f"{runs:>6} {path:<26}{first:>10.1f}{again:>10.1f}{size / 1e3:>10.1f}{memory:>10.1f}", flush=True)
            finally:
                process.terminate()
                process.wait()
        runs *= 10


if sys.argv[1:2] == ["--pages"]:
    pages(sys.argv[2] if len(sys.argv) > 2 else "target/release/throng", int(sys.argv[3]) if len(sys.argv) > 3 else 1000)
    sys.exit()

program = sys.argv[1] if len(sys.argv) > 1 else "target/release/throng"
pairs = int(sys.argv[2]) if len(sys.argv) > 2 else 8
options = (
    "run --models epoll --clients 100,1000 --duration 2s --runs 1 --control none --no-ceiling --latency-at none "
    "--probes cpu,switches --output"
).split()


def drain(fd):
    try:
        while os.read(fd, 65536):
            pass
    except OSError:
        pass  # the other side is closed


def run(view):
    """The trials of one run, by the number of clients."""
    with tempfile.TemporaryDirectory() as directory:
        record = pathlib.Path(directory) / "record"
        command = [program, *options, str(record)]
        environment = dict(os.environ, TERM="xterm-256color")
        if view:
            ours, theirs = pty.openpty()
            fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
            reader = threading.Thread(target=drain, args=(ours,))
            reader.start()
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs, env=environment)
            os.close(theirs)
            code = process.wait()
            reader.join()
            os.close(ours)
        else:
            code = subprocess.run(command, capture_output=True, env=environment).returncode
        assert code == 0, f"exit code {code}"
        lines = (record / "trials.jsonl").read_text().splitlines()
        return {trial["clients"]: trial for trial in map(json.loads, lines)}


def figures(trial):
    load, replies = trial["load"], trial["load"]["window"]["replies"]
    server, client = trial["server_side"]["metrics"], trial["client_side"]["metrics"]
    each = lambda value: value / replies if value is not None else None
    return {
        "requests/s": load["window"]["replies_per_s"],
        "p50 us": load["service_time"]["p50_us"],
        "p99 us": load["service_time"]["p99_us"],
        "server CPU us/reply": each(server["cpu_ms"] * 1e3),
        "client CPU us/reply": each(client["cpu_ms"] * 1e3),
        "client switches/s": client["voluntary_switches_per_s"] + client["involuntary_switches_per_s"],
    }


seen = {True: {}, False: {}}
for place in range(pairs):
    # Each comes first as often as the other.
    for view in [place % 2 == 0, place % 2 == 1]:
        for clients, trial in run(view).items():
            seen[view].setdefault(clients, []).append(figures(trial))

print(f"{'clients':>8}  {'':<22}{'view':>12}{'no view':>12}   ratio (middle half)")
for clients, on in sorted(seen[True].items()):
    off = seen[False][clients]
    for name in on[0]:
        values = [row[name] for row in on], [row[name] for row in off]
        if not all(values[0]) or not all(values[1]):
            continue
        ratios = [a / b for a, b in zip(*values)]
        low, middle, high = statistics.quantiles(ratios, n=4)
        medians = [statistics.median(column) for column in values]
        print(f"{clients:>8}  {name:<22}{medians[0]:>12.4g}{medians[1]:>12.4g}   {middle:.3f} ({low:.3f}-{high:.3f})")
