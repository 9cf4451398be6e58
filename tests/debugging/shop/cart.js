// What customers have in their carts, and what they would pay for it.

export const CENTS = { tea: 250, cup: 400 };
const carts = new Map();

/** Puts so many more of an article into a customer's cart. */
export function add(customer, article, quantity) {
  const cart = carts.get(customer) ?? new Map();
  carts.set(customer, cart);
  cart.set(article, (cart.get(article) ?? 0) + quantity);
}

/** Takes the cart of a customer who orders. */
export function take(customer) {
  const cart = carts.get(customer) ?? new Map();
  carts.delete(customer);
  return cart;
}

/** What so many of an article cost, in cents: every tenth is half the price. */
export function price(article, quantity) {
  let cents = 0;
  for (let piece = 1; piece <= quantity; piece++) {
    cents += piece % 10 === 0 ? CENTS[article] / 2 : CENTS[article];
  }
  return cents;
}

/** What all open carts are worth, in cents. */
export function worth() {
  let cents = 0;
  for (const cart of carts.values()) {
    for (const [article, quantity] of cart) cents += price(article, quantity);
  }
  return cents;
}
