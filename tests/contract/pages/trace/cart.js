// A shop that adds up its cart when it is asked, asks itself for it, and keeps every answer.
const http = require("node:http");
const items = [{ price: 2, quantity: 4e7 }];
const answers = [];

function total() {
  let sum = 0;
  for (const { price, quantity } of items) for (let piece = 0; piece < quantity; piece += 1) sum = (sum + price) | 0;
  return sum;
}

function keep(answer) {
  answers.push(new Array(20000).fill(answer));
}

const server = http.createServer((request, response) => {
  keep(String(total()));
  response.end("added up");
});
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address();
  setInterval(() => http.get({ port, path: "/carts/41?token=7c1d9a" }, (answer) => answer.resume()), 50);
  console.log("open");
});
