#!/usr/bin/env python3
"""The CPU time per request of watched turns over that of timed slices, by server: overhead.py RECORD ..."""

import json
import statistics
import sys

for record in sys.argv[1:]:
    for line in open(f"{record}/trials.jsonl"):
        trial = json.loads(line)
        if not trial.get("profile"):
            continue
        cost = lambda turn: turn["server_cpu_ns"] / 1e3 / turn["replies"]
        turns = trial["profile"]["turns"]
        timed = statistics.median(cost(slice) for slice in trial["slices"] if slice["replies"])
        for kind, of in [("stacks", [t for t in turns if t.get("samples")]), ("calls", [t for t in turns if t.get("calls")])]:
            if of:
                watched = statistics.median(cost(turn) for turn in of)
                print(f"{record} {trial['server']} {kind}: {watched:.2f} µs watched, {timed:.2f} µs timed: {watched / timed:.3f}")
