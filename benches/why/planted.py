#!/usr/bin/env python3
"""Whether `throng compare` names the planted cause: planted.py THRONG [-n TIMES] [--node] [KIND ...].

Compares a server with the same one that has one planted cost, and looks for the cause in the sentences of the summary.
`same` compares a server with itself, where no cause may be named.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
# What the sentences must name, by kind of cost: any of these.
EXPECTED = {
    "spin": ["planted_spin", "plantedSpin"],
    "copy": ["planted_copy", "plantedCopy"],
    "call": ["getppid()", "statx()", "plantedCall"],
    "sleep": ["nanosleep()", "futex()", "plantedSleep"],
    "allocation": ["planted_allocation", "malloc", "free", "plantedAllocation"],
    "lock": ["futex()"],
}


def sentences(throng, servers, seconds):
    with tempfile.TemporaryDirectory() as directory:
        command = [throng, "compare", *servers, "-n", "plain", "-n", "planted", "--protocol", "echo", "--size", "64",
                   "-c", "20", "--runs", "20", "--probes", "cpu", "--control", "none", "--warm-up-limit", f"{seconds}s",
                   "--allow-rough", "--json", "-o", f"{directory}/run"]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if ran.returncode not in (0, 3):
            sys.exit(f"{' '.join(command)}: {ran.stderr}")
        why = json.loads(ran.stdout)["why"]
        return why[0]["sentences"] if why else []


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("throng")
    arguments.add_argument("-n", type=int, default=20)
    arguments.add_argument("--node", action="store_true")
    arguments.add_argument("-v", action="store_true")
    arguments.add_argument("kinds", nargs="*")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as built:
        if given.node:
            program = f"node --perf-basic-prof --no-turbo-inlining {HERE / 'planted.js'} {{port}}"
        else:
            subprocess.run(["cc", "-O2", "-g", "-pthread", "-o", f"{built}/planted", HERE / "planted.c"], check=True)
            program = f"{built}/planted {{port}}"
        kinds = given.kinds or [*EXPECTED, "same"]
        for kind in kinds:
            if given.node and kind == "lock":
                continue
            base = {"lock": "nolock"}.get(kind, "none")
            planted = "none" if kind == "same" else kind
            right, wrong = 0, []
            for _ in range(given.n):
                said = sentences(given.throng, [f"{program} {base}", f"{program} {planted}"], 1)
                text = " ".join(said)
                if kind == "same":
                    # One difference of the whole in 20 is there by chance, but no cause.
                    is_right = ("No part of the CPU time" in text or "no single part" in text) and len(said) == 1
                else:
                    is_right = any(name in text for name in EXPECTED[kind])
                right += is_right
                if not is_right:
                    wrong.append(text)
                if given.v:
                    print(f"  {text}", flush=True)
            print(f"{kind}: {right} of {given.n}", flush=True)
            for text in wrong:
                print(f"  not named in: {text}", flush=True)


main()
