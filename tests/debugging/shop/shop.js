// The service: POST /carts/CUSTOMER?article=tea&quantity=1 fills a cart, POST /orders/CUSTOMER orders what is in it.
import { createServer } from 'node:http';
import { add, take } from './cart.js';
import { Orders } from './orders.js';

export function shop(database, log) {
  const orders = new Orders(database);
  return createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url, 'http://localhost');
    const [, what, customer] = pathname.split('/');
    if (what === 'carts') {
      add(customer, searchParams.get('article'), searchParams.get('quantity'));
      return response.writeHead(204).end();
    }
    const placed = orders.place(customer, take(customer));
    for (const { id, article, quantity, state } of placed) {
      const level = state === 'accepted' ? 'info' : 'error';
      log(level, `order ${state}`, { order: id, customer, article, quantity });
    }
    response.writeHead(201, { 'content-type': 'application/json' }).end(JSON.stringify(placed));
  });
}
