// Answers at once, but blocks once for a second: one second after its first request.
//
//   node benches/peers/node/stall.mjs PORT

import { createServer } from "node:http";

let begun = false;

function block() {
  const end = Date.now() + 1000;
  while (Date.now() < end);
}

createServer((_, response) => {
  if (!begun) setTimeout(block, 1000);
  begun = true;
  response.end("hello\n");
}).listen(Number(process.argv[2]), "127.0.0.1");
