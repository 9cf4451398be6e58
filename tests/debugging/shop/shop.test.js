import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { shop } from './shop.js';

test('one cup and two cups are three cups', async () => {
  const server = shop(':memory:', () => {}).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const post = (path) => fetch(`http://127.0.0.1:${server.address().port}${path}`, { method: 'POST' });
  await post('/carts/ada?article=cup&quantity=1');
  await post('/carts/ada?article=cup&quantity=2');
  const [order] = await (await post('/orders/ada')).json();
  server.close();
  assert.equal(order.quantity, 3);
  assert.equal(order.cents, 1200);
});
