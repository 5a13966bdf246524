"""A WebSocket echo: websocket.py PORT [DIRECTORY WITH cert.pem AND key.pem]"""

import asyncio
import os
import ssl
import sys

import websockets

LOG = os.environ.get("SERVICE_LOG")


async def echo(socket, *_):
    """Sends each message back."""
    with open(LOG or os.devnull, "a", buffering=1) as log:
        async for message in socket:
            log.write(f"{len(message)}\n")
            await socket.send(message)


async def main():
    tls = None
    if len(sys.argv) > 2:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(f"{sys.argv[2]}/cert.pem", f"{sys.argv[2]}/key.pem")
    port = int(sys.argv[1])
    async with websockets.serve(echo, "127.0.0.1", port, compression=None, backlog=4096, ssl=tls):
        await asyncio.Future()


asyncio.run(main())
