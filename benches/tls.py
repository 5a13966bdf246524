#!/usr/bin/env python3
"""Requests per CPU second of the client, over TLS on one nginx: throng on both engines, wrk, and oha where installed.

  benches/tls.py [-c CLIENTS] [-d SECONDS] [-r ROUNDS] [-b BYTES] [--suite NAME] [--reconnect] [--lock FILE]

Each round runs every client once, in random order. nginx has CPU 0 and the client CPU 1, so each client can use one
CPU. CPU time is that of the whole process, user and system; requests are all that it made. Everybody agrees on the same
cipher suite, since nginx offers only one. With --reconnect every request is a connection and a full handshake.

A small run: benches/tls.py -d 2 -r 3
"""

import argparse
import fcntl
import json
import os
import random
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import nginx


def clients(options, url, cacert):
    """What each client is called with, by name. throng checks the server's certificate, the others do not."""
    throng = os.environ.get("THRONG", "target/release/throng")
    count, seconds = str(options.clients), f"{options.seconds}s"
    load = [throng, "load", url, "--cacert", cacert, "--json", "--threads", "1"]
    load += ["-c", count, "-d", seconds, "--warm-up", "0s"]
    if options.reconnect:
        load += ["--requests-per-connection", "1", "--close", "reset"]
    all_clients = {"throng": load, "throng on io_uring": [*load, "--engine", "io-uring"]}
    if shutil.which("wrk"):
        wrk = ["wrk", "-t1", "-c", count, "-d", seconds, url]
        all_clients["wrk"] = wrk + (["-H", "Connection: close"] if options.reconnect else [])
    if shutil.which("oha"):
        oha = ["oha", "--no-tui", "--insecure", "-c", count, "-z", seconds, "--output-format", "json", url]
        all_clients["oha"] = oha + (["--disable-keepalive"] if options.reconnect else [])
    return all_clients


def requests_of(name, printed):
    """How many requests a client says it made, and how many failed."""
    if name.startswith("throng"):
        load = json.loads(printed)
        return load["verified"], sum(load["errors"].values())
    if name == "wrk":
        failed = re.search(r"Socket errors: (.*)", printed)
        counts = [int(count) for count in re.findall(r"\d+", failed[1])] if failed else []
        return int(re.search(r"(\d+) requests in", printed)[1]), sum(counts)
    load = json.loads(printed)
    return sum(load["statusCodeDistribution"].values()), 0


def cpu_s():
    """CPU time of all children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run(name, words):
    """Requests per CPU second."""
    before = cpu_s()
    ran = subprocess.run(["taskset", "-c", "1", *words], capture_output=True, text=True, check=False)
    used = cpu_s() - before
    if ran.returncode != 0:
        sys.exit(f"{name} failed: {ran.stderr}")
    requests, failed = requests_of(name, ran.stdout)
    if failed:
        print(f"{name}: {failed} errors", file=sys.stderr)
    return requests / used


def start_nginx(directory, options):
    """Starts nginx; its process and its address."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "30",
         "-keyout", f"{directory}/key.pem", "-out", f"{directory}/cert.pem"],
        check=True, capture_output=True)
    http = f"access_log off; keepalive_timeout {0 if options.reconnect else 65};"
    tls = f"""ssl;
    ssl_certificate cert.pem;
    ssl_certificate_key key.pem;
    ssl_protocols TLSv1.3;
    ssl_conf_command Ciphersuites {options.suite}"""
    process, port = nginx.start(directory, options.bytes, http, tls, ("taskset", "-c", "0"))
    time.sleep(1)
    return process, f"https://127.0.0.1:{port}/"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-c", dest="clients", type=int, default=50)
    parser.add_argument("-d", dest="seconds", type=int, default=5)
    parser.add_argument("-r", dest="rounds", type=int, default=7)
    parser.add_argument("-b", dest="bytes", type=int, default=100)
    parser.add_argument("--suite", default="TLS_AES_128_GCM_SHA256")
    parser.add_argument("--reconnect", action="store_true")
    parser.add_argument("--lock")
    options = parser.parse_args()
    if options.lock:
        lock = open(options.lock, "w", encoding="ascii")  # held until this ends
        fcntl.flock(lock, fcntl.LOCK_EX)
    with tempfile.TemporaryDirectory() as directory:
        server, url = start_nginx(directory, options)
        try:
            all_clients = clients(options, url, f"{directory}/cert.pem")
            seen = {name: [] for name in all_clients}
            for _ in range(options.rounds):
                names = list(all_clients)
                random.shuffle(names)
                for name in names:
                    seen[name].append(run(name, all_clients[name]))
        finally:
            server.terminate()
            server.wait()
    print("| client | requests per CPU second | least | most | µs of CPU per request | to throng |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, rates in seen.items():
        middle = statistics.median(rates)
        ratios = [ours / theirs for ours, theirs in zip(seen["throng"], rates)]
        print(f"| {name} | {middle:,.0f} | {min(rates):,.0f} | {max(rates):,.0f} | {1e6 / middle:.2f} "
              f"| {statistics.median(ratios):.2f} |")


if __name__ == "__main__":
    main()
