"""A WebSocket echo: websocket.py PORT"""

import asyncio
import os
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
    async with websockets.serve(echo, "127.0.0.1", int(sys.argv[1]), compression=None, backlog=4096):
        await asyncio.Future()


asyncio.run(main())
