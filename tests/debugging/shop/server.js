import { appendFileSync } from 'node:fs';
import { worth } from './cart.js';
import { shop } from './shop.js';

const log = (level, msg, fields) =>
  appendFileSync('app.log', JSON.stringify({ level, time: new Date().toISOString(), msg, ...fields }) + '\n');

const server = shop('app.db', log);
server.listen(Number(process.env.PORT ?? 0), '127.0.0.1', () => {
  log('info', 'listening', { port: server.address().port });
  console.log(`listening ${server.address().port}`);
});

// For the board in the office: what all open carts are worth.
setInterval(() => {
  globalThis.open = worth();
}, 100);
