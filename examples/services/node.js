// A web server of Node.js: node node.js PORT [DIRECTORY WITH cert.pem AND key.pem]
const fs = require('fs');
const { log } = require('./log');

const body = 'x'.repeat(1000);
const answer = (request, response) => {
  log(request);
  response.writeHead(200, { 'Content-Type': 'text/plain', 'Content-Length': body.length });
  response.end(body);
};
const [port, directory] = process.argv.slice(2);
const read = (name) => fs.readFileSync(`${directory}/${name}`);
const server = directory
  ? require('https').createServer({ cert: read('cert.pem'), key: read('key.pem') }, answer)
  : require('http').createServer(answer);
// Clients may rest between requests.
server.keepAliveTimeout = 60_000;
server.listen({ port: Number(port), host: '127.0.0.1', backlog: 4096 });
