'use strict';
// An application with every kind of value in its state, and traps beside them that count whoever steps into one.
let trapped = 0;
const trap = () => {
  trapped++;
  return 1;
};
const traps = {
  get: trap, has: trap, ownKeys: () => (trap(), []), getPrototypeOf: () => (trap(), null),
  getOwnPropertyDescriptor: () => (trap(), undefined), apply: trap, isExtensible: trap,
};
class Cart {
  #secret = 1;
  constructor() {
    this.items = [{ name: 'tea', price: 2.5 }, { name: 'cup', price: 4 }];
  }
  get total() {
    return trap() + this.#secret;
  }
}
class Wallet {
  #balance = 100;
  #items = [1];
  open = true;
  get x() { return this.#balance + this.#items.length; }
}
class Purse extends Wallet {
  #coins = '#none';
}
globalThis.exact = {
  number: 123456789.12345679, small: -1.5e-300, wallet: new Wallet(), purse: new Purse(),
  keys: new Map([[1, 'number'], ['1', 'text'], [2, 'two'], ['3', 'three']]),
};
const cart = new Cart();
const state = {
  count: 42, text: 'hello', yes: true, nothing: null, missing: undefined,
  big: 12345678901234567890n, nan: NaN, zero: -0, infinite: -Infinity,
  symbol: Symbol('mark'), [Symbol('hidden')]: 5, lone: 'half \ud83d pair \u{1f600}',
  date: new Date(1795168800123), never: new Date(NaN), regexp: /a+/gi,
  map: new Map([['alice', { age: 30 }], [7, 'seven'], [{ k: 1 }, 'object']]),
  set: new Set([1, 'two', { three: 3 }]),
  error: Object.assign(new TypeError('boom'), { code: 'E_BOOM' }),
  bytes: Buffer.from('hello'), floats: new Float64Array([1.5, 2]), sparse: [1, , , 4],
  promise: Promise.resolve(1), weak: new WeakMap(), plain: Object.create(null),
  arrow: (a, b) => a + b, klass: Cart, cart,
  deep: { a: { b: { c: { d: { e: 'bottom' } } } } },
  'dotted.key': 'dot', 'line\nkey': 'newline', '': 'empty', "it's \"quoted\"": 'quotes',
  password: 'hunter2-hunter2', nested: { apiKey: 'k-123', credentials: { user: 'ada', pin: 1234 } },
  'set-cookie': 'sid=1', key: 'an ordinary key',
};
// What has properties beside its elements.
const called = () => 1;
state.beside = {
  map: Object.assign(new (class Registry extends Map {})([['a', 1]]), { extra: 1 }),
  set: Object.assign(new Set([1]), { extra: 1 }), list: Object.assign([1], { extra: 'q', password: 'hunter2' }),
  bytes: Object.assign(new Uint8Array([1]), { extra: 1 }), called: Object.assign(called, { calls: 7 }),
  no: new Boolean(false), five: new Number(5), many: new AggregateError([new Error('inner')], 'outer'),
  wrapped: new Error('outer', { cause: { code: 7 } }), match: /b(c)/.exec('abc'),
};
state.self = state;
state.again = state.cart;
Object.defineProperty(state, 'getter', { enumerable: true, get: () => (trap(), 'never') });
Object.defineProperty(state, 'thrower', { enumerable: true, get() { trap(); throw new Error('thrown'); } });
Object.defineProperty(state, 'setter', { enumerable: true, set() { trap(); } });
state.proxy = new Proxy({ a: 1 }, traps);
state.callable = new Proxy(function () {}, traps);
state.above = Object.create(new Proxy({}, traps));
state.json = JSON.parse('{"__proto__": {"polluted": true}, "constructor": "own"}');
state.liar = Object.defineProperty(new Error('true'), 'message', { get: trap });
Object.defineProperty(state.liar, 'stack', { get: trap });
globalThis.state = state;
globalThis.trapped = () => trapped;
Object.defineProperty(globalThis, 'trappedNow', { enumerable: true, configurable: true, get: () => trapped });
setInterval(() => (state.seen = trapped), 5);

// Big things, made where they are asked for.
if (process.argv.includes('--big')) {
  globalThis.keys = {};
  for (let i = 0; i < 1_000_000; i++) globalThis.keys[`item${i}`] = i;
  globalThis.list = Array.from({ length: 1_000_000 }, (_, i) => i);
  globalThis.table = new Map(globalThis.list.map((i) => [i, i]));
  globalThis.texts = Object.fromEntries(Array.from({ length: 5 }, (_, i) => [`t${i}`, 'x'.repeat(10_000_000)]));
  globalThis.wide = Array.from({ length: 200 }, (_, i) => ({ i, inner: Array.from({ length: 60 }, (_, j) => ({ j, s: 'y'.repeat(50) })) }));
}
// What a hostile or careless program does to the built-in functions.
function pollute() {
  const evil = function () { trapped++; throw new Error('polluted'); };
  for (const name of ['get', 'set', 'value', 'enumerable', 'toJSON']) {
    Object.defineProperty(Object.prototype, name, { __proto__: null, configurable: true, get: evil, set: evil });
  }
  for (const name of ['map', 'push', 'concat', 'forEach']) Array.prototype[name] = evil;
  Array.prototype[Symbol.iterator] = evil;
  JSON.stringify = JSON.parse = evil;
  Object.keys = Object.getOwnPropertyNames = Object.getOwnPropertyDescriptor = Object.entries = evil;
  Map.prototype.get = Map.prototype.has = Map.prototype.entries = evil;
  state.polluted = true;
  if (process.argv.includes('--reflect')) Reflect.ownKeys = Reflect.getPrototypeOf = Reflect.apply = evil;
}
if (process.argv.includes('--busy')) setTimeout(() => { for (;;) state.count = 42; }, 300);

// Variables of a module that only closures know.
let hiddenCounter = 7;
const hiddenTable = new Map([['a', 1]]);
exports.bump = () => { hiddenCounter++; return hiddenTable; };
require('http').createServer((_, response) => response.end('ok')).listen(0, '127.0.0.1', function () {
  console.log(`listening ${this.address().port}`);
  // Once the line has been written: not all of Node.js survives it.
  if (process.argv.includes('--polluted')) setTimeout(pollute, 1000);
});
