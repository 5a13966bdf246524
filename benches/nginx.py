"""nginx with one worker, in a directory of its own."""

import os
import pathlib
import socket
import subprocess

CONFIGURATION = """
daemon off;
worker_processes 1;
pid nginx.pid;
error_log stderr crit;
events {{ worker_connections 4096; }}
http {{
  {http}
  keepalive_requests 1000000000;
  client_body_temp_path temporary;
  server {{
    listen 127.0.0.1:{port} {listen};
    root html;
  }}
}}
"""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def start(directory, page_bytes, http, listen="", command=()):
    """Starts it with these directives and a page of so many bytes; its process and its port."""
    os.chmod(directory, 0o755)  # its worker is another user
    place, port = pathlib.Path(directory), free_port()
    (place / "html").mkdir()
    (place / "html" / "index.html").write_text("x" * page_bytes)
    (place / "nginx.conf").write_text(CONFIGURATION.format(port=port, http=http, listen=listen))
    return subprocess.Popen([*command, "nginx", "-p", directory, "-c", "nginx.conf"]), port
