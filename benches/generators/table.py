#!/usr/bin/env python3
"""Trials (JSON lines of trial.py) as Markdown: a table for each target and number of clients.

    table.py TRIALS [BASE]      BASE is what the others are held against [the first one's name]
"""

import json
import os
import random
import statistics
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from tables import failures, others, spread
from tools import TOOLS

FULL = 0.95  # of a CPU: a side that used less was not the limit
RESAMPLES = 10_000
TARGETS = {
    "http-nginx": "HTTP keep-alive, one nginx worker",
    "http": "HTTP keep-alive, throng's server",
    "http2": "HTTP/2, 1 stream, throng's server",
    "http2x32": "HTTP/2, 32 streams, throng's server",
    "http2-nginx": "HTTP/2, 1 stream, one nginx worker",
    "http2x32-nginx": "HTTP/2, 32 streams, one nginx worker",
    "http2-nghttpd": "HTTP/2, 1 stream, nghttpd",
    "http2x32-nghttpd": "HTTP/2, 32 streams, nghttpd",
    "echo": "echo of 1000 bytes",
    "upload": "uploads of 10 MB",
}


def interval(ratios):
    """Where the median of ratios lies with 95 % confidence: a bootstrap over the rounds."""
    chance = random.Random(1)
    medians = sorted(statistics.median(chance.choices(ratios, k=len(ratios)))
                     for _ in range(RESAMPLES))
    return medians[RESAMPLES // 40], medians[-RESAMPLES // 40]


def ratio(found, base, figure):
    """The ratio to the base within each round, and whether the difference is significant."""
    of_base = {trial["round"]: trial[figure] for trial in base}
    ratios = [trial[figure] / of_base[trial["round"]]
              for trial in found if trial["round"] in of_base]
    if not ratios:
        return "-"
    least, most = interval(ratios)
    text = f"{statistics.median(ratios):.2f} ({least:.2f}-{most:.2f})"
    return f"{text}, not distinguishable" if least <= 1 <= most else text


def limited_by(found):
    """Which side was busy all the time."""
    watched = [trial for trial in found if "client_busy" in trial]
    if not watched:
        return "-"
    client, server = (statistics.median(trial[side] for trial in watched)
                      for side in ("client_busy", "server_busy"))
    if client >= FULL:
        limit = "the client"
    elif server >= FULL:
        limit = "the server"
    else:
        limit = "neither: others ran"
    return f"{limit} ({client:.0%}, {server:.0%})"


def percentile(found, name):
    times = [trial[name] for trial in found if trial.get(name) is not None]
    return f"{statistics.median(times):.0f}" if times else "-"


def row(name, found, base):
    """The cells of one tool."""
    amount, scale, digits = "per_cpu_second", 1e3, 1
    if found[0]["target"] == "upload":
        for trial in found:
            trial["gb_per_s"] = trial["bytes_per_s"] / 1e9
        amount, scale, digits = "gb_per_s", 1, 2
    cells = [f"**`{name}`**" if found is base else f"`{name}`",
             spread([trial[amount] for trial in found], scale, digits)]
    cells.append("1" if found is base else ratio(found, base, amount))
    cells += [spread([trial["rate_per_s"] for trial in found], 1e3),
              "1" if found is base else ratio(found, base, "rate_per_s"),
              limited_by(found), percentile(found, "p50_us"), percentile(found, "p99_us")]
    return "| " + " | ".join(cells) + " |"


def table(target, clients, trials, base_name):
    by_name = {}
    for trial in trials:
        if "failure" not in trial:
            by_name.setdefault(trial["name"], []).append(trial)
    base = by_name.get(base_name, [])
    amount = ("GB/s" if target == "upload" else "k requests per client-CPU-second")
    print(f"## {TARGETS[target]}, {clients} clients\n")
    print(f"| generator | {amount} | ratio to `{base_name}` (95 %) | k requests/s | ratio (95 %) "
          "| limited by (CPU of client, server) | p50, us | p99, us |")
    print("|---|---:|---:|---:|---:|---|---:|---:|")
    figure = "bytes_per_s" if target == "upload" else "per_cpu_second"
    def median(name):
        return statistics.median(trial[figure] for trial in by_name[name])
    for name in sorted(by_name, key=median, reverse=True):
        print(row(name, by_name[name], base))
    rounds = len({trial["round"] for trial in trials})
    print(f"\nMedians [least, most] over rounds: {rounds}.{others(trials)}{failures(trials)}")
    for name in by_name:
        if name in TOOLS and TOOLS[name].says:
            print(f"`{name}`: {TOOLS[name].says}.")
    print()


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        trials = [json.loads(line) for line in file if line.strip()]
    if not trials:
        sys.exit("there are no trials")
    base = sys.argv[2] if len(sys.argv) > 2 else trials[0]["name"]
    for target, clients in sorted({(trial["target"], trial["clients"]) for trial in trials}):
        table(target, clients, [trial for trial in trials if trial["target"] == target
                                and trial["clients"] == clients], base)


if __name__ == "__main__":
    main()
