// A web server of Node.js: node server.js PORT
const body = 'x'.repeat(1000);
const server = require('http').createServer((request, response) => {
  response.writeHead(200, { 'Content-Type': 'text/plain', 'Content-Length': body.length });
  response.end(body);
});
server.listen(Number(process.argv[2] || process.env.PORT), '127.0.0.1');
