// Counts requests by lines of a file, where one is wanted.
const fs = require('fs');
const path = process.env.SERVICE_LOG;
const file = path ? fs.openSync(path, 'a') : undefined;
exports.log = (request) => {
  if (file !== undefined) fs.writeSync(file, `${request.method} ${request.url}\n`);
};
