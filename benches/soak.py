#!/usr/bin/env python3
"""Long churn against throng's servers, with peers that misbehave: memory has to stay flat, and all counts have to agree.

    benches/soak.py --minutes 10                    a model of each family, ten minutes together
    benches/soak.py --minutes 60 --models epoll     all of it for one
    benches/soak.py --minutes 10 --clients 1000 --think 5ms

Clients of `throng load` reconnect after 20 requests each. Meanwhile other peers
  stall      send half a request, and wait until the server closes the connection (--request-timeout)
  reset      send a request and reset the connection at once
  close half send a request, close their side and read the reply to its end
  vanish     send half a request and are gone without a FIN or RST, so that the connection is half open (TCP_REPAIR)
  never read send many requests, read nothing and reset the connection a moment later

Looked at: memory of its own, descriptors, threads and processes of the server and of the load. The median of the last third
must not exceed the most of the first third by more than a twentieth and what comes and goes. Every connection has to
be accounted for, and every reply that somebody got has to be counted. Ends with 1 if anything is wrong."""

import argparse
import json
import os
import select
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

from processes import allow_descriptors, end, listening_address, tree

# One of each family: a process or thread for each client, pools, readiness, completion, a runtime.
FAMILIES = "fork,prefork,thread,thread-pool,poll,epoll,reactors,aio,io-uring,tokio"
WORKERS = {"prefork", "thread-pool"}  # whose number bounds how many clients are served at once
REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
REQUEST_TIMEOUT_S = 2
PEERS = 24  # at most so many misbehave at a time
PAUSE_S = 0.02  # between two of them
UNREAD = 200  # requests of one that never reads
REPAIR = 19  # TCP_REPAIR
MEMORY_SLACK_KIB = 4096
BUFFER_KIB = 64  # the most that a worker keeps for answers
COUNT_SLACK = PEERS + 16


class Peers(threading.Thread):
    """Peers that misbehave, until they are told to stop."""

    def __init__(self, host, port):
        super().__init__(daemon=True)
        self.address = (host, port)
        self.over = threading.Event()
        self.waiting = []  # those that wait for the server to close, and since when
        self.kinds = {"stall": 0, "reset": 0, "close half": 0, "vanish": 0, "never read": 0}
        self.answered = 0  # requests of which the reply came
        self.unknown = 0  # requests that the server may have counted or not
        self.not_cut = 0  # stalled connections that the server left open
        self.failed = []

    def run(self):
        kinds = list(self.kinds)
        turn = 0
        while not self.over.is_set():
            kind = kinds[turn % len(kinds)]
            turn += 1
            try:
                if len(self.waiting) < PEERS:
                    self.misbehave(kind)
                self.look()
            except OSError as error:
                self.failed.append(f"{kind}: {error}")
            time.sleep(PAUSE_S)
        deadline = time.monotonic() + 10 * REQUEST_TIMEOUT_S
        while self.waiting and time.monotonic() < deadline:
            self.look()
            time.sleep(PAUSE_S)
        self.not_cut += len(self.waiting)
        for peer, _ in self.waiting:
            peer.close()

    def misbehave(self, kind):
        peer = socket.create_connection(self.address, timeout=30)
        self.kinds[kind] += 1
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if kind == "stall":
            peer.sendall(REQUEST[:20])
            peer.setblocking(False)
            self.waiting.append((peer, time.monotonic()))
        elif kind == "reset":
            self.unknown += 1
            peer.sendall(REQUEST)
            reset(peer)
        elif kind == "close half":
            peer.sendall(REQUEST)
            peer.shutdown(socket.SHUT_WR)
            reply = b""
            while piece := peer.recv(65536):
                reply += piece
            peer.close()
            if not reply.startswith(b"HTTP/1.1 200"):
                raise OSError(f"answered with {reply[:60]!r}")
            self.answered += 1
        elif kind == "vanish":
            peer.sendall(REQUEST[:20])
            try:
                peer.setsockopt(socket.IPPROTO_TCP, REPAIR, 1)
            except PermissionError:
                self.kinds[kind] -= 1
                self.kinds["reset"] += 1
                reset(peer)
                return
            peer.close()
        else:
            self.unknown += UNREAD
            peer.setblocking(False)
            try:
                peer.send(REQUEST * UNREAD)
            except BlockingIOError:
                pass
            time.sleep(PAUSE_S)
            reset(peer)

    def look(self):
        """Who waits is let go once the server has closed the connection."""
        if not self.waiting:
            return
        readable, _, _ = select.select([peer for peer, _ in self.waiting], [], [], 0)
        for peer in readable:
            try:
                gone = peer.recv(65536) == b""
            except ConnectionResetError:
                gone = True
            if gone:
                peer.close()
                self.waiting = [one for one in self.waiting if one[0] is not peer]


def reset(peer):
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()


def status(pid, name, file="status"):
    try:
        with open(f"/proc/{pid}/{file}", encoding="ascii", errors="replace") as text:
            for line in text:
                if line.startswith(name):
                    return int(line.split()[1])
    except OSError:
        pass
    return 0


def descriptors(pid):
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0


def look(root):
    """What a process and its children have."""
    pids = tree(root)
    return {
        "KiB": sum(status(pid, "Pss_Anon:", "smaps_rollup") for pid in pids),
        "descriptors": sum(map(descriptors, pids)),
        "threads": sum(status(pid, "Threads:") for pid in pids),
    }


def grown(looks, slack):
    """Of each thing its most in the first third and its median in the last, and what grew."""
    third = len(looks) // 3
    seen, wrong = {}, []
    for name in looks[0]:
        first = max(one[name] for one in looks[:third])
        last = int(statistics.median(one[name] for one in looks[-third:]))
        seen[name] = (first, last)
        if last > first * 1.05 + slack[name]:
            wrong.append(f"{name} grew from {first} to {last}")
    return seen, wrong


def soak(throng, model, seconds, clients, think):
    """One model; what there is to say of it, and what is wrong."""
    command = [throng, "serve", model, "--listen", "127.0.0.1:0", "--protocol", "http", "--json", "--drain", "10s",
               "--request-timeout", f"{REQUEST_TIMEOUT_S}s"]
    if model in WORKERS:
        command += ["--workers", str(clients + 2 * PEERS)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    load = peers = None
    # No pipe, which might be full before anybody reads it.
    output = tempfile.TemporaryFile("w+")
    try:
        address = listening_address(server)
        host, port = address.rsplit(":", 1)
        load = subprocess.Popen(
            [throng, "load", address, "--protocol", "http", "-c", str(clients), "-d", f"{seconds:.0f}s", "--think", think,
             "--requests-per-connection", "20", "--eager", "--warm-up", "0s", "--first-reply-timeout", "60s", "--source", "127.20.0.0/24",
             "--json"], stdout=output)
        peers = Peers(host, int(port))
        peers.start()
        looks, pause = [], max(0.2, min(2.0, seconds / 200))
        began = time.monotonic()
        while load.poll() is None and time.monotonic() - began < seconds * 2 + 120:
            # At first all clients come, and buffers come to their size.
            if time.monotonic() - began > min(10, seconds / 10):
                looks.append((look(server.pid), look(load.pid)))
            time.sleep(pause)
        # Both are at their end with the last of them.
        while looks and looks[-1][1]["descriptors"] < clients:
            looks.pop()
        load.wait(60)
        output.seek(0)
        result = json.load(output)
        peers.over.set()
        peers.join()
        server.terminate()
        rest = server.stdout.read()
        server.wait(60)
        counts = json.loads(rest[rest.index("{"):])
    finally:
        if peers:
            peers.over.set()
        for process in (load, server):
            if process and process.poll() is None:
                end(process, 10)
    wrong = []
    said = {"model": model, "requests": result["verified"], "connections": counts["accepted"], "peers": dict(peers.kinds)}
    # It takes long until each worker of a pool has met one that never reads, and has its buffer.
    workers = clients + 2 * PEERS if model in WORKERS else 0
    slack = {"KiB": MEMORY_SLACK_KIB + BUFFER_KIB * workers, "descriptors": COUNT_SLACK, "threads": COUNT_SLACK}
    if len(looks) < 12:
        wrong.append(f"only {len(looks)} looks")
    else:
        for side, name in enumerate(("server", "load")):
            said[name], grew = grown([both[side] for both in looks], slack)
            wrong += [f"{name}: {what}" for what in grew]
    others = sum(peers.kinds.values())
    checks = [
        (not result["errors"], f"clients had errors: {result['errors']}"),
        (result["requests"] == result["verified"], f"{result['verified']} of {result['requests']} were answered"),
        (sum(counts["outcomes"].values()) == counts["accepted"], f"connections end as {counts['outcomes']}"),
        (counts["accepted"] == result["connections"] + others,
         f"{counts['accepted']} were accepted, of {result['connections']} and {others} connections"),
        (0 <= counts["requests"] - result["verified"] - peers.answered <= peers.unknown,
         f"the server counted {counts['requests']} requests, clients {result['verified']}, others {peers.answered} and "
         f"up to {peers.unknown}"),
        (not counts["refused"], f"connections were refused: {counts['refused']}"),
        (peers.not_cut == 0, f"{peers.not_cut} stalled connections were never cut"),
        (not peers.failed, f"{len(peers.failed)} peers failed, first: {peers.failed[:1]}"),
        (server.returncode == 0, f"the server ended with {server.returncode}"),
    ]
    wrong += [words for is_right, words in checks if not is_right]
    return said, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10, help="For all models together [default: 10]")
    parser.add_argument("--models", default=FAMILIES, help=f"Models [default: {FAMILIES}]")
    parser.add_argument("--clients", type=int, default=200, help="Clients that behave [default: 200]")
    parser.add_argument("--think", default="20ms", help="Pause of a client between its requests [default: 20ms]")
    parser.add_argument("--throng", default=os.environ.get("THRONG", "target/release/throng"), help="Program")
    given = parser.parse_args()
    allow_descriptors()
    listed = json.loads(subprocess.check_output([given.throng, "list", "models", "--json"]))
    supported = {model["name"] for model in listed if model["supported"]}
    models = [model for model in given.models.split(",") if model in supported]
    left_out = [model for model in given.models.split(",") if model not in supported]
    if left_out:
        print(f"not supported here: {', '.join(left_out)}", file=sys.stderr)
    seconds = max(5.0, given.minutes * 60 / max(1, len(models)))
    print("| model | requests | connections | misbehaving | server KiB: most at first, median at last | descriptors | "
          "threads | load KiB | wrong |\n|---|--:|--:|--:|--:|--:|--:|--:|---|")
    is_wrong = False
    for model in models:
        said, wrong = soak(given.throng, model, seconds, given.clients, given.think)
        is_wrong |= bool(wrong)
        sides = [said.get(name, {}) for name in ("server", "load")]
        cells = [f"{side[name][0]}, {side[name][1]}" if side else "" for side, name in
                 ((sides[0], "KiB"), (sides[0], "descriptors"), (sides[0], "threads"), (sides[1], "KiB"))]
        print(f"| `{model}` | {said['requests']} | {said['connections']} | {sum(said['peers'].values())} | "
              f"{' | '.join(cells)} | {'; '.join(wrong) or 'nothing'} |", flush=True)
        print(f"{model}: {said['peers']}", file=sys.stderr)
    sys.exit(is_wrong)


main()
