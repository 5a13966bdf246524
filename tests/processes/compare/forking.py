"""An HTTP server with a process per connection, which uses 2 ms of CPU time: python3 forking.py PORT [ignore]

With `ignore`, nobody waits for these processes, and the kernel forgets how much CPU time they used.
"""

import os
import signal
import socket
import sys
import time


def answer(client):
    while True:
        request = b""
        while not request.endswith(b"\r\n\r\n"):
            part = client.recv(65536)
            if not part:
                return
            request += part
        began = time.process_time()
        while time.process_time() < began + 0.002:
            pass
        client.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
        return


ignores = "ignore" in sys.argv
signal.signal(signal.SIGCHLD, signal.SIG_IGN if ignores else signal.SIG_DFL)
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=128)
while True:
    client, _ = listener.accept()
    if os.fork() == 0:
        answer(client)
        os._exit(0)
    client.close()
    try:
        while not ignores and os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
