"""An echo server for one client at a time: the start of every stage of the course.

python3 server.py 7000

Copy it, and change `serve` for the model of the stage. Nothing else needs to change.
"""

import socket
import sys


def converse(client):
    """Sends back what a client sends, until it closes."""
    with client:
        try:
            while data := client.recv(16384):
                client.sendall(data)
        except ConnectionError:
            pass


def serve(listener):
    """Serves all clients. As it is, each waits until the one before it has left."""
    while True:
        client, _ = listener.accept()
        converse(client)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} PORT")
    serve(socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=1024))
