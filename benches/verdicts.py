#!/usr/bin/env python3
"""How often verdicts of `throng compare` are right: a server against itself, and against itself with a planted slowdown.

    benches/verdicts.py [--throng PATH] [--server c|node] [--clients N] [--same N] [--planted N] [--percent 1,2,5,10]
                        [--more "..."]

--same: comparisons of the server with itself. --planted: comparisons for each slowdown, which is a spin per request that
takes so many percent of the CPU time of a request. Prints a line a comparison, and a table at the end:

    planted | comparisons | found | not found | wrong | measured | seconds

found: called slower or costlier. wrong: called different from itself, or of the wrong sign, or equivalent though it is
more than the margin of 2 % away. measured: the median of the ratios, since a spin may cost more or less than planned.
Run it on a machine with nothing else to do.
"""

import argparse
import json
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SERVERS = {"c": str(HERE / "peers" / "c" / "epoll"), "node": f"node {HERE}/peers/node/echo.mjs"}
METRICS = {"requests_per_s": "throughput", "server_cpu_us_per_request": "CPU per request"}


def compare(options, spin, more=()):
    """The measures of the server with this spin against the one without, and how long that took."""
    with tempfile.TemporaryDirectory() as directory:
        record = pathlib.Path(directory) / "record"
        server = SERVERS[options.server]
        servers = [f"{server} {{port}}", f"env SPIN_PER_TURN={spin} {server} {{port}}"]
        command = [options.throng, "compare", *servers, "-n", "plain", "-n", "other", "--protocol", "echo"]
        command += ["--clients", str(options.clients), "--probes", "cpu", "--allow-rough", "-o", str(record)]
        began = time.monotonic()
        done = subprocess.run([*command, *shlex.split(options.more), *more], capture_output=True, text=True)
        took = time.monotonic() - began
        if done.returncode not in (0, 4):
            sys.exit(done.stderr)
        summary = json.loads((record / "summary.json").read_text())
        measures = summary["comparison"]["pairs"][0]["measures"]
        rows = {one["name"]: one for one in measures if one["name"] in METRICS}
        return rows, summary["grade"]["level"], took


def percent_per_spin(options):
    """How many percent of CPU time a request takes more, for each turn of the loop."""
    rows, _, _ = compare(options, 20_000, ["--runs", "100"])
    ratio = rows["server_cpu_us_per_request"]["ratio"]["value"]
    return (ratio - 1) * 100 / 20_000


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--throng", default=str(HERE.parent / "target" / "release" / "throng"))
    parser.add_argument("--server", choices=SERVERS, default="c")
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--same", type=int, default=20)
    parser.add_argument("--planted", type=int, default=5)
    parser.add_argument("--percent", default="1,2,5,10")
    parser.add_argument("--more", default="")
    options = parser.parse_args()
    subprocess.run(["make", "-s", "-C", str(HERE / "peers" / "c"), "epoll"], check=True)
    per_spin = percent_per_spin(options)
    print(f"a spin of {1 / per_spin:.0f} turns is 1 % of a request's CPU time")
    plan = [(0.0, options.same)]
    plan += [(float(percent), options.planted) for percent in options.percent.split(",") if percent]
    table = []
    for planted, count in plan:
        seen = {name: {"found": 0, "not found": 0, "wrong": 0} for name in METRICS}
        ratios = {name: [] for name in METRICS}
        times = []
        for number in range(count):
            rows, grade, took = compare(options, round(planted / per_spin))
            times.append(took)
            line = []
            for name in METRICS:
                verdict, ratio = rows[name]["verdict"], rows[name].get("ratio")
                differs = verdict in ("better", "worse")
                is_wrong = verdict == "better" or (differs and planted == 0)
                is_wrong = is_wrong or (verdict == "equivalent" and planted > 2)
                kind = "wrong" if is_wrong else "found" if differs else "not found"
                seen[name][kind] += 1
                ratios[name] += [ratio["value"]] if ratio else []
                shown = f"{ratio['value']:.4f} ({ratio['low']:.4f}-{ratio['high']:.4f}) " if ratio else ""
                line.append(f"{METRICS[name]} {shown}{verdict}")
            print(f"{planted:g} % #{number + 1}: {'; '.join(line)}; {grade}, {took:.1f} s", flush=True)
        for name, kinds in seen.items():
            measured = f"{(statistics.median(ratios[name]) - 1) * 100:+.1f} %" if ratios[name] else ""
            seconds = statistics.median(times) if times else 0
            table.append((planted, METRICS[name], count, *kinds.values(), measured, seconds))
    print("\n| planted | metric | comparisons | found | not found | wrong | measured | seconds (median) |")
    print("|---:|---|---:|---:|---:|---:|---:|---:|")
    for planted, name, count, found, missed, wrong, measured, seconds in table:
        print(f"| {planted:g} % | {name} | {count} | {found} | {missed} | {wrong} | {measured} | {seconds:.1f} |")


if __name__ == "__main__":
    main()
