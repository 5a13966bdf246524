// A server of HTTP/2 without TLS: the same 1,000 bytes for every request.
// SERVICE_LOG: a file that gets a line for each request.
'use strict';

const fs = require('fs');
const http2 = require('http2');

const port = Number(process.argv[2]);
const body = Buffer.alloc(1000, 'x');
const log = process.env.SERVICE_LOG ? fs.openSync(process.env.SERVICE_LOG, 'a') : null;
const server = http2.createServer((request, response) => {
  if (log !== null) fs.writeSync(log, `${request.method} ${request.url}\n`);
  response.end(body);
});
server.listen(port, '127.0.0.1', 4096);
process.on('SIGTERM', () => process.exit(0));
