"""The servers that the load generators are held against, each on the server's CPU, on a port of
its own, under a directory that goes with it."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from processes import SERVER_CPU, end, limit, listening_address

HTTP_BYTES = 100  # in the body of an HTTP reply
ECHO_BYTES = 1000
START_LIMIT_S, STOP_LIMIT_S = 10, 10

NGINX = """
daemon off;
worker_processes 1;
worker_rlimit_nofile {descriptors};
pid {directory}/pid;
error_log {directory}/errors;
events {{ worker_connections {connections}; }}
http {{
  access_log off;
  keepalive_requests 1000000000;
  keepalive_timeout 1h;
  client_body_temp_path {directory}/body;
  proxy_temp_path {directory}/proxy;
  fastcgi_temp_path {directory}/fastcgi;
  uwsgi_temp_path {directory}/uwsgi;
  scgi_temp_path {directory}/scgi;
  server {{
    listen 127.0.0.1:{port} backlog=4096{http2};
    location / {{ default_type text/plain; return 200 "{body}"; }}
  }}
}}
"""


def free_ports(number):
    """Free ports."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [found.getsockname()[1] for found in sockets]
    for found in sockets:
        found.close()
    return ports


class Server:
    """One that runs; `ports` are its own, the first one is where clients come to."""

    def __init__(self, process, ports, directory):
        self.process, self.ports, self.directory = process, ports, directory

    def stop(self):
        end(self.process, STOP_LIMIT_S)
        shutil.rmtree(self.directory)


def command_of(kind, model, throng, ports, directory):
    """What starts a server of this kind; throng's models choose their port themselves."""
    port = str(ports[0])
    if kind in ("nginx", "nginx-http2"):
        descriptors = os.sysconf("SC_OPEN_MAX")
        path = os.path.join(directory, "conf")
        with open(path, "w", encoding="ascii") as file:
            file.write(NGINX.format(directory=directory, port=port, body="x" * HTTP_BYTES,
                                    descriptors=descriptors, connections=descriptors - 100,
                                    http2=" http2" if kind == "nginx-http2" else ""))
        return ["nginx", "-e", os.path.join(directory, "errors"), "-c", path]
    if kind == "redis":
        return ["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "",
                "--appendonly", "no", "--dir", directory, "--tcp-backlog", "4096"]
    if kind == "neper":
        return ["tcp_rr", "-Q", str(ECHO_BYTES), "-R", str(ECHO_BYTES), "-l", "600", "--nolog",
                "--listen-backlog", "4096", "-C", port, "-P", str(ports[1])]
    if kind == "nghttpd":
        with open(os.path.join(directory, "index.html"), "w", encoding="ascii") as file:
            file.write("x" * HTTP_BYTES)
        return ["nghttpd", "--no-tls", "-n1", "-d", directory, "-a", "127.0.0.1", port]
    protocol, size = {"http": ("http", HTTP_BYTES), "http2": ("http2", HTTP_BYTES), "echo": ("echo", ECHO_BYTES),
                      "upload": ("upload", None)}[kind]
    size = ["--size", str(size)] if size else []
    return [throng, "serve", model, "--protocol", protocol, *size, "--listen", "127.0.0.1:0"]


def listens(port):
    """Whether a server listens there, without connecting: neper's server takes every connection for
    its client."""
    with open("/proc/net/tcp", encoding="ascii") as table:
        rows = [line.split() for line in table][1:]
    return any(row[1].endswith(f":{port:04X}") and row[3] == "0A" for row in rows)


def await_port(process, port):
    """Waits until clients can connect."""
    for _ in range(START_LIMIT_S * 100):
        if process.poll() is not None:
            raise RuntimeError(f"{process.args[3]} ended before it listened")
        if listens(port):
            return
        time.sleep(0.01)
    raise RuntimeError(f"{process.args[3]} did not listen in {START_LIMIT_S} s")


def start(kind, model, throng):
    """Starts a server: "nginx", "nginx-http2", "nghttpd", "redis", "neper", or throng's `model` with this protocol."""
    directory = tempfile.mkdtemp()
    ports = free_ports(2)
    command = ["taskset", "-c", str(SERVER_CPU),
               *command_of(kind, model, throng, ports, directory)]
    announces = kind in ("http", "http2", "echo", "upload")
    process = subprocess.Popen(command, stdout=subprocess.PIPE if announces else subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, text=True)
    server = Server(process, ports, directory)
    try:
        if announces:
            limit(process.pid, START_LIMIT_S)
            ports[0] = int(listening_address(process).rpartition(":")[2])
            signal.alarm(0)
        else:
            await_port(process, ports[0])
    except RuntimeError:
        server.stop()
        raise
    return server
