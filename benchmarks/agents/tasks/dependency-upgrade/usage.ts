import memoizer = require("../lib");

const price = memoizer.sync({
  load: (article: string, amount: number) => ({ article, total: amount * 3 }),
  hash: (article: string, amount: number) => `${article}/${amount}`,
  itemMaxAge: (article: string, amount: number, result: { total: number }) => result.total + amount,
  max: 100,
  maxAge: 1000,
  dispose: (key: string, value: { article: string }) => console.log(key.toUpperCase(), value.article),
  stale: true,
  noDisposeOnSet: true,
  updateAgeOnGet: true,
});

const total: number = price("tea", 2).total;
const keys: string[] = price.keys();
price.del("tea", 2);
price.reset();

const read = memoizer({
  load: (name: string, callback: (error: Error | null, text?: string) => void) => callback(null, name + total + keys.length),
  hash: (name: string) => name,
});
read("a", (error, text?: string) => console.log(error, text));
