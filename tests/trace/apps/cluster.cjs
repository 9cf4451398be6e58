// Two workers behind one port; the one that is asked for `/busy` works from then on.
const cluster = require('cluster');
const http = require('http');

function burnTheProcessor(milliseconds) {
  const end = Date.now() + milliseconds;
  let sum = 0;
  while (Date.now() < end) for (let i = 0; i < 1000; i++) sum += Math.sqrt(i);
  return sum;
}

if (cluster.isMaster) {
  // Inspectors at ports that the system chooses, as one that follows the first may be taken.
  cluster.setupMaster({ inspectPort: 0 });
  let listening = 0;
  cluster.on('listening', (worker, address) => {
    if (++listening === 2) console.log('ready ' + address.port);
  });
  cluster.fork();
  cluster.fork();
} else {
  // A worker does not outlive its test.
  process.on('disconnect', () => process.exit(0));
  http
    .createServer((request, response) => {
      response.end(String(process.pid), () => {
        if (request.url === '/busy') setInterval(() => burnTheProcessor(50), 0);
      });
    })
    .listen(0, '127.0.0.1');
}
