// Two processes of Node.js behind one port: node node-cluster.js PORT
const cluster = require('cluster');
if (cluster.isPrimary) {
  cluster.fork();
  cluster.fork();
} else {
  require('./node');
}
