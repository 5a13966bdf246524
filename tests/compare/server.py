"""A web server of Python's standard library: python3 server.py PORT [TROUBLE]"""

import http.server
import os
import signal
import subprocess
import sys
import time


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body leave together
    body = b"x" * 1000

    def do_GET(self):
        if trouble == "crash" and self.server.crashes():
            os._exit(7)
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *arguments):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024
    answered = 0

    def crashes(self):
        """Under load, but not while it is looked at before."""
        self.answered += 1
        return self.answered > 100


port = int(sys.argv[1]) if len(sys.argv) > 1 else int(os.environ["PORT"])
trouble = sys.argv[2] if len(sys.argv) > 2 else ""
if trouble == "late":
    print("not yet", flush=True)
    time.sleep(0.3)
if trouble == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if trouble == "daemon" and os.fork() > 0:
    sys.exit(0)
if trouble == "stray":
    # A helper that leaves tree, group and session, as daemons do.
    helper = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(60)\n"
    subprocess.run([sys.executable, "-c", helper], check=True)
server = Server(("127.0.0.1", port), Handler)
if trouble == "late":
    print("ready for customers", file=sys.stderr, flush=True)
server.serve_forever()
