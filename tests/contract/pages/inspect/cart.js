// A shop that adds up its cart over and over.
const cart = { customer: "ada", items: [{ article: "tea", price: 2.5, quantity: 2 }], token: "7c1d9a" };
let total = 0;
globalThis.state = { cart };

setInterval(() => {
  total = cart.items.reduce((sum, { price, quantity }) => sum + price * quantity, 0);
}, 20);
console.log("open");
