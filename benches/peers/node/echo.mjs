// Node: one event loop, core module net. Reading pauses while the peer does not take its answers.

import { createServer } from "node:net";

const port = Number(process.argv[2]);
if (process.argv.length !== 3 || !Number.isInteger(port)) {
  console.error("usage: node echo.mjs PORT");
  process.exit(2);
}

// So often per message, as in the servers in C: a slowdown of a known size.
const turns = Number(process.env.SPIN_PER_TURN ?? 0);
let spun = 0;

const server = createServer({ noDelay: true, allowHalfOpen: true }, (socket) => {
  socket.on("data", (bytes) => {
    for (let turn = 0; turn < turns; turn++) spun = (spun + turn) | 0;
    if (!socket.write(bytes)) socket.pause();
  });
  socket.on("drain", () => socket.resume());
  socket.on("end", () => socket.end());
  socket.on("error", () => socket.destroy());
});

server.listen({ host: "127.0.0.1", port, backlog: 4096 }, () => {
  console.log(`listening on 127.0.0.1:${server.address().port}`);
});
