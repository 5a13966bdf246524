// A service made with Express; its JSON changes in length: node express.js PORT
const { log } = require('./log');
const application = require('express')();

let number = 0;
application.get('/', (request, response) => {
  log(request);
  number += 1;
  response.json({ number, items: Array.from({ length: number % 7 }, (_, item) => ({ item })) });
});
const server = application.listen({ port: Number(process.argv[2]), host: '127.0.0.1', backlog: 4096 });
// Clients may rest between requests.
server.keepAliveTimeout = 60_000;
