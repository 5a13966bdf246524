"""A web server of Python's standard library: python3 server.py PORT [TROUBLE]"""

import http.server
import mmap
import os
import random
import signal
import subprocess
import sys
import threading
import time


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body leave together
    body = b"x" * 1000

    def do_GET(self):
        if trouble in ("crash", "hang", "abandon", "leak", "gorge") and self.server.has_enough():
            self.server.give_way()
        if trouble == "slow":
            time.sleep(0.02)
        if trouble == "warming":
            # 40 % more a second, however late the measurement begins.
            time.sleep(random.uniform(0.05, 0.15) * 0.7 ** (time.monotonic() - started))
        if trouble == "shy" and self.server.is_left_out(self.client_address):
            time.sleep(600)
        if trouble == "names":
            self.body = self.path.encode()
        status = 200
        if trouble == "rising" and not self.server.has_risen():
            status = 503
        if trouble == "broken" or trouble == "busy" and self.server.has_enough():
            status = 500
        self.send_response(status)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *arguments):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024
    answered = 0

    kept = []
    clients = {}
    lock = threading.Lock()

    def has_enough(self):
        """Under load, but not while it is looked at before."""
        self.answered += 1
        return self.answered > 20

    def has_risen(self):
        """Not for the first few who ask."""
        self.answered += 1
        return self.answered > 3

    def is_left_out(self, client):
        """One client of the second start; not one of those that look whether replies are right."""
        with self.lock:
            self.clients.setdefault(client, len(self.clients))
            return starts == 2 and self.clients[client] == 4

    def give_way(self):
        if trouble == "crash":
            os._exit(7)
        if trouble == "hang":
            os.kill(os.getpid(), signal.SIGSTOP)
        if trouble == "abandon":
            if os.fork() == 0:
                time.sleep(60)
            os._exit(0)
        if trouble == "gorge":
            self.kept.append(b"x" * (16 << 20))
        if trouble == "leak":
            try:
                self.kept.append(mmap.mmap(-1, 256 << 20))  # no page of it is ever touched
            except (MemoryError, OSError):
                print("out of memory", file=sys.stderr, flush=True)
                os._exit(9)


port = int(sys.argv[1]) if len(sys.argv) > 1 else int(os.environ["PORT"])
trouble = sys.argv[2] if len(sys.argv) > 2 else ""
started = time.monotonic()
if trouble == "shy":
    with open(sys.argv[3], "a+") as log:
        print("start", file=log, flush=True)
        log.seek(0)
        starts = len(log.readlines())
if trouble == "quits":

    def quit(*_):
        with open(sys.argv[3], "w") as file:
            file.write(f"{sys.argv[4]} {os.environ['PORT2']}")
        os._exit(0)

    signal.signal(signal.SIGQUIT, quit)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if trouble == "late":
    print("not yet", flush=True)
    time.sleep(0.3)
if trouble == "brood" and os.fork() == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(60)
if trouble == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if trouble == "joined":
    os.setpgid(0, os.getpgid(os.getppid()))
if trouble == "daemon" and os.fork() > 0:
    sys.exit(0)
if trouble == "stray":
    # A helper that leaves tree, group and session, as daemons do.
    helper = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(60)\n"
    subprocess.run([sys.executable, "-c", helper], check=True)
server = Server(("127.0.0.1", port), Handler)


def flood(descriptor):
    """Writes as much as is taken: lines, or one without an end."""
    piece = (b"nothing worth reading\n" if descriptor == 1 else b"more of it ") * 6000
    while True:
        os.write(descriptor, piece)


if trouble == "flood":
    for descriptor in (1, 2):
        threading.Thread(target=flood, args=(descriptor,), daemon=True).start()
if trouble == "late":
    print("ready for customers", file=sys.stderr, flush=True)
server.serve_forever()
