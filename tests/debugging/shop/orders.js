// The orders, kept in SQLite.
import { DatabaseSync } from 'node:sqlite';
import { price } from './cart.js';

const STOCK = { tea: 500, cup: 10 };

export class Orders {
  #insert;

  constructor(path) {
    const database = new DatabaseSync(path);
    database.exec(`CREATE TABLE IF NOT EXISTS orders (
      id INTEGER PRIMARY KEY, customer TEXT NOT NULL, article TEXT NOT NULL,
      quantity INTEGER NOT NULL, cents INTEGER NOT NULL, state TEXT NOT NULL)`);
    this.#insert = database.prepare(
      'INSERT INTO orders (customer, article, quantity, cents, state) VALUES (?, ?, ?, ?, ?) RETURNING *');
  }

  /** Keeps what a customer orders; `state` tells whether there is enough of it. */
  place(customer, cart) {
    return [...cart].map(([article, quantity]) => {
      const state = quantity <= STOCK[article] ? 'accepted' : 'out of stock';
      return this.#insert.get(customer, article, quantity, price(article, quantity), state);
    });
  }
}
