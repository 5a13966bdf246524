#!/usr/bin/env python3
"""Trials (JSON lines of trial.py) as Markdown: one table for each number and kind of clients."""

import json
import os
import statistics
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from tables import failures, others, spread


def table(clients, load, trials):
    by_name = {}
    for trial in trials:
        if "failure" not in trial:
            by_name.setdefault(trial["name"], []).append(trial)

    def rate(name):
        return statistics.median(trial["per_cpu_second"] for trial in by_name[name])

    models = [name for name, found in by_name.items() if found[0]["kind"] == "model"]
    best = max(models, key=rate, default=None)
    of_best = {trial["round"]: trial["per_cpu_second"] for trial in by_name.get(best, [])}
    print(f"## {clients} clients of `{load}`\n")
    print("| server | k requests per server-CPU-second | ratio to the best model "
          "| k requests/s | server's CPU busy | Jain's index | most / fewest of one client "
          "| longest first answer, ms | not served |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for name in sorted(by_name, key=rate, reverse=True):
        found = by_name[name]
        ratios = [trial["per_cpu_second"] / of_best[trial["round"]]
                  for trial in found if trial["round"] in of_best]
        fewest = min(trial["least"] for trial in found)
        uneven = [trial["most"] / trial["least"] for trial in found if trial["least"] > 0]
        label = f"`{name}`"
        cells = [
            f"**{label}**" if name in models else label,
            spread([trial["per_cpu_second"] for trial in found], 1e3),
            spread(ratios, digits=2) if ratios else "-",
            spread([trial["rate_per_s"] for trial in found], 1e3),
            f"{statistics.median(trial['server_busy'] for trial in found):.0%}",
            f"{statistics.median(trial['jain'] for trial in found):.3f}",
            f"{statistics.median(uneven):.2f}" if fewest > 0 and uneven else "one had none",
            spread([trial["first_answer_max_ms"] for trial in found], digits=0),
            str(max(trial["unserved"] for trial in found)),
        ]
        print("| " + " | ".join(cells) + " |")
    if best is not None:
        print(f"\nBest model: `{best}`.", end="")
    print(others(trials), end="")
    print(failures(trials), end="")
    print("\n")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        trials = [json.loads(line) for line in file if line.strip()]
    def kind(trial):
        return trial["clients"], trial.get("load", "throng load")

    for clients, load in sorted(set(map(kind, trials))):
        table(clients, load, [trial for trial in trials if kind(trial) == (clients, load)])


if __name__ == "__main__":
    main()
