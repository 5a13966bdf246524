#!/usr/bin/env python3
"""Which load generators are on this machine.

    found.py list THRONG                      a Markdown table, with versions
    found.py choose TARGET THRONG [TOOL...]   lines "NAME<tab>", or "NAME<tab>why it is unavailable"
"""

import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from tools import TOOLS, Work
from trial import protocol_of, server_kind

SERVERS = {"nginx": ("nginx", "Debian: nginx-light"),
           "nginx-http2": ("nginx", "Debian: nginx-light"),
           "nghttpd": ("nghttpd", "Debian: nghttp2-server"),
           "redis": ("redis-server", "Debian: redis-server")}
VERSION = {"ab": "-V", "wrk": "-v", "wrk2": "-v", "hey": None, "echo_bench": None}  # else --version


def printed(command):
    """What a command says, whichever way; bounded in time."""
    try:
        with tempfile.TemporaryDirectory() as directory:  # neper leaves a log where it is
            run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 text=True, timeout=10, check=False, cwd=directory)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return run.stdout


def understands(tool, throng):
    """Whether this throng has the flags that it is to be called with."""
    work = Work([1], 1, "", throng, requests=1)
    flags = [word for word in tool.command(work) if word.startswith("--")]
    text = printed([os.path.abspath(throng), "load", "--help"])
    return [flag for flag in flags if flag not in text]


def missing(name, target, throng):
    """Why a tool cannot be used for a target; None if it can."""
    tool = TOOLS[name]
    server = server_kind(tool, target)
    if name.startswith("throng"):
        flags = understands(tool, throng)
        if flags:
            return f"throng load has no {', '.join(flags)} yet"
    elif tool.path() is None:
        return f"{os.path.basename(tool.program)} is not installed ({tool.needs})"
    program, package = SERVERS.get(server, (None, None))
    if program and shutil.which(program) is None:
        return f"its server {program} is not installed ({package})"
    return None


def fits(tool, target):
    """Whether it does this work at all."""
    protocol = protocol_of(target)
    if protocol == "upload":
        return tool.program == "throng"
    return tool.protocol == "any" or protocol in tool.protocol.split()


def version(name, throng):
    """Its version in a word or two."""
    if name.startswith("throng"):
        return printed([os.path.abspath(throng), "--version"]).strip()
    program = os.path.basename(TOOLS[name].program)
    flag = VERSION.get(program, "--version")
    if flag is None or program.startswith("load-"):
        return "unknown"
    return printed([program, flag]).strip().splitlines()[0].split(" Copyright")[0]


def main():
    if sys.argv[1] == "list":
        throng = sys.argv[2]
        print("| generator | work | here | differs |")
        print("|---|---|---|---|")
        for name, tool in TOOLS.items():
            target = "echo" if tool.protocol == "any" else tool.protocol.split()[0]
            why = missing(name, target, throng)
            here = f"unavailable: {why}" if why else version(name, throng)
            print(f"| `{name}` | {tool.protocol} | {here} | {tool.says} |")
        return
    target, throng, names = sys.argv[2], sys.argv[3], sys.argv[4:]
    unknown = [name for name in names if name not in TOOLS]
    if unknown:
        sys.exit(f"no generator is called {unknown[0]}; there are: {', '.join(TOOLS)}")
    for name in names or TOOLS:
        if fits(TOOLS[name], target):
            print(f"{name}\t{missing(name, target, throng) or ''}")
        elif names:
            print(f"{name}\tit does no {target}")


if __name__ == "__main__":
    main()
