"""An echo server of one thread with a limit of its own: python3 server.py PORT LIMIT VALUE [FILE]

work MS FILE: each request takes so many milliseconds of CPU time, one after the other; how long they
              took is written to FILE at the end.
wait MS FILE: the same, asleep.
stop N:       takes no client any more while it has N, and lets others wait.
say N TEXT:   takes no more than N clients; to the others it closes, and writes TEXT to standard error.
hoard MIB:    each client costs so much memory.
"""

import selectors
import signal
import socket
import sys
import time

SIZE = 100  # bytes of a request

port, limit, value = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", port))
listener.listen(4096)
selector = selectors.DefaultSelector()
selector.register(listener, selectors.EVENT_READ, None)
clients, hoard = 0, []
requests, busy = 0, 0.0


def end(*_):
    if limit in ("work", "wait"):
        with open(sys.argv[4], "a") as file:
            file.write(f"{requests} {busy}\n")
    sys.exit(0)


def accept():
    global clients
    client, _ = listener.accept()
    if limit == "say" and clients >= value:
        print(sys.argv[4], file=sys.stderr, flush=True)
        client.close()
        return
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    selector.register(client, selectors.EVENT_READ, client)
    clients += 1
    if limit == "hoard":
        hoard.append(bytearray(int(value * 2**20)))
    if limit == "stop" and clients == value:
        selector.unregister(listener)


def serve(client):
    global clients, requests, busy
    began = time.perf_counter()
    try:
        data = client.recv(65536)
    except ConnectionResetError:  # a client that had waited too long
        data = b""
    if not data:
        selector.unregister(client)
        client.close()
        if limit == "stop" and clients == value:
            selector.register(listener, selectors.EVENT_READ, None)
        clients -= 1
        return
    for _ in range(len(data) // SIZE):
        requests += 1
        if limit == "wait":
            time.sleep(value / 1e3)
        until = time.thread_time() + value / 1e3
        while limit == "work" and time.thread_time() < until:
            pass
    try:
        client.sendall(data)
    except ConnectionError:  # its end is read next
        pass
    busy += time.perf_counter() - began


signal.signal(signal.SIGTERM, end)
while True:
    for key, _ in selector.select():
        accept() if key.data is None else serve(key.data)
