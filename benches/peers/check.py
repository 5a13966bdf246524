#!/usr/bin/env python3
"""Is an echo server right? Half-close, a slow reader next to a quick client, a reset, many clients, the end.

    check.py THRONG CLIENTS SERVER [ARGUMENT ...]

CLIENTS is a list like 50,2000. Prints a line a case and ends with 1 if one failed.
"""

import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

LIMIT_S = 20
MEBIBYTE = bytes(range(251)) * 4178  # 1,048,678 bytes that do not repeat at a power of two


def connect(address):
    host, port = address.rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=LIMIT_S)


def read_to_end(client):
    parts = []
    while part := client.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


def half_close(address):
    """All that was sent before the client closed its side comes back, then the end."""
    with connect(address) as client:
        sender = threading.Thread(target=lambda: (client.sendall(MEBIBYTE),
                                                  client.shutdown(socket.SHUT_WR)))
        sender.start()
        answer = read_to_end(client)
        sender.join()
        assert answer == MEBIBYTE, f"{len(answer)} of {len(MEBIBYTE)} bytes, or wrong ones"
    with connect(address) as client:  # request and end in one
        client.sendall(b"last words")
        client.shutdown(socket.SHUT_WR)
        assert read_to_end(client) == b"last words"


def slow_reader(address):
    """A client that does not read blocks no other, and gets every byte in the end."""
    slow = []
    for _ in range(5):
        client = connect(address)
        client.setblocking(False)
        sent, still = 0, 0
        while still < 20 and sent < 64 * len(MEBIBYTE):
            try:
                sent += client.send(MEBIBYTE[sent % len(MEBIBYTE):])
                still = 0
            except BlockingIOError:
                still += 1
                time.sleep(0.01)
        slow.append((client, sent))
    with connect(address) as quick:
        for _ in range(100):
            quick.sendall(b"quick")
            assert quick.recv(5, socket.MSG_WAITALL) == b"quick"
    for client, sent in slow:
        client.settimeout(LIMIT_S)
        client.shutdown(socket.SHUT_WR)
        answer = read_to_end(client)
        client.close()
        whole = MEBIBYTE * (sent // len(MEBIBYTE) + 1)
        assert answer == whole[:sent], f"{len(answer)} of {sent} bytes, or wrong ones"


def reset(address):
    """A client that resets its connection harms no other."""
    for _ in range(20):
        client = connect(address)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.sendall(MEBIBYTE[:100_000])
        client.close()
    with connect(address) as client:
        client.sendall(b"still there")
        assert client.recv(11, socket.MSG_WAITALL) == b"still there"


def many_clients(throng, clients):
    """Every byte of ten requests of each client."""
    def case(address):
        load = subprocess.run([throng, "load", address, "-c", str(clients), "-n",
                               str(10 * clients), "--first-reply-timeout", "20s"],
                              stdout=subprocess.PIPE, text=True, timeout=120, check=True)
        assert f"{10 * clients} verified" in load.stdout, load.stdout
    case.__name__ = f"{clients} clients"
    return case


def children(pid):
    found = subprocess.run(["pgrep", "-P", str(pid)], stdout=subprocess.PIPE, text=True, check=False)
    return [int(child) for child in found.stdout.split()]


def end(server, address):
    """SIGTERM ends it and its children, also with a client there."""
    with connect(address) as client:
        client.sendall(b"hello")
        client.recv(5, socket.MSG_WAITALL)
        below = children(server.pid)
        server.terminate()
        server.wait(LIMIT_S)
        time.sleep(0.1)
        left = [pid for pid in below if os.path.exists(f"/proc/{pid}")]
        assert not left, f"left behind: {left}"


def main():
    throng, clients, *command = sys.argv[1:]
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    address = next((line.split("listening on ")[1].split()[0].rstrip(",")
                    for line in server.stdout if "listening on " in line), None)
    cases = [half_close, slow_reader, reset, *(many_clients(throng, int(n)) for n in clients.split(",")),
             lambda address: end(server, address)]
    cases[-1].__name__ = "end"
    failed = 0
    try:
        for case in cases:
            try:
                case(address)
                verdict = "right"
            except (AssertionError, OSError, subprocess.SubprocessError) as error:
                verdict = f"WRONG: {type(error).__name__}: {str(error)[:300]}"
                failed += 1
            print(f"  {case.__name__.replace('_', ' '):16} {verdict}", flush=True)
    finally:
        if server.poll() is None:
            server.send_signal(signal.SIGTERM)
            try:
                server.wait(LIMIT_S)
            except subprocess.TimeoutExpired:
                server.kill()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
