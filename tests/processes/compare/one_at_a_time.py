"""An echo server that takes one request of 1000 bytes, answers it, and then looks for the next one: whatever
came together with a request is lost. python3 one_at_a_time.py PORT"""

import socketserver
import sys

SIZE = 1000


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        while request := self.receive():
            self.request.sendall(request[:SIZE])

    def receive(self):
        request = b""
        while len(request) < SIZE:
            more = self.request.recv(1 << 16)
            if not more:
                return None
            request += more
        return request


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
