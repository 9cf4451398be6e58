const memoizer = require('./..');
const assert = require('chai').assert;

const pause = ms => new Promise(done => setTimeout(done, ms));

describe('what the users rely on', function () {
  const warnings = [];
  const keep = warning => warnings.push(warning.message);
  let loads;
  before(() => process.on('warning', keep));
  after(() => process.removeListener('warning', keep));
  beforeEach(() => { loads = 0; warnings.length = 0; });

  // Both forms behind one face: what is returned is a promise of the result.
  const forms = {
    sync: options => memoizer.sync({load: n => { loads++; return {n}; }, hash: n => `k${n}`, ...options}),
    callback: options => {
      const memoized = memoizer({load: (n, done) => { loads++; done(null, {n}); }, hash: n => `k${n}`, ...options});
      const promised = n => new Promise((done, fail) => memoized(n, (error, result) => error ? fail(error) : done(result)));
      return Object.assign(promised, {keys: memoized.keys, del: memoized.del, reset: memoized.reset});
    },
  };

  for (const [form, make] of Object.entries(forms)) describe(form, function () {
    const plain = value => Array.isArray(value) ? value[0].n : value.n;
    const all = async (f, ...numbers) => { for (const n of numbers) assert.deepEqual(await f(n), {n}); };
    const times = async (f, ...numbers) => { const before = loads; await all(f, ...numbers); return loads - before; };

    for (const max of [undefined, 0, Infinity]) for (const maxAge of [undefined, 0, Infinity, 60000])
      it(`has no limit with max ${max} and maxAge ${maxAge}`, async function () {
        const f = make({...(max === undefined ? {} : {max}), ...(maxAge === undefined ? {} : {maxAge})});
        const many = Array.from({length: 3000}, (_, n) => n);
        await all(f, ...many);
        assert.equal(f.keys().length, 3000);
        assert.equal(await times(f, 0, 1, 2999), 0);
        await pause(1);
        assert.deepEqual(warnings, []);
      });

    it('drops the least recently used', async function () {
      const f = make({max: 2});
      await all(f, 1, 2, 1, 3);
      assert.isArray(f.keys());
      assert.deepEqual(f.keys(), ['k3', 'k1']);
      assert.equal(await times(f, 2), 1);
    });

    it('disposes of key and value', async function () {
      const left = [];
      const f = make({max: 2, dispose: (key, value) => left.push([key, plain(value)])});
      await all(f, 1, 2, 3);
      f.del(3);
      f.reset();
      assert.deepEqual(left, [['k1', 1], ['k3', 3], ['k2', 2]]);
      assert.deepEqual(f.keys(), []);
    });

    it('expires', async function () {
      const left = [];
      const f = make({maxAge: 60, dispose: key => left.push(key)});
      await all(f, 1);
      assert.equal(await times(f, 1), 0);
      await pause(120);
      assert.equal(await times(f, 1), 1);
      assert.deepEqual(left, ['k1']);
      await pause(1);
      assert.deepEqual(warnings, []);
    });

    it('returns a stale one once', async function () {
      const f = make({maxAge: 60, stale: true});
      await all(f, 1);
      await pause(120);
      assert.equal(await times(f, 1), 0);
      assert.equal(await times(f, 1), 1);
    });

    it('begins the age again at a hit', async function () {
      const f = make({maxAge: 400, updateAgeOnGet: true});
      await all(f, 1);
      await pause(250);
      assert.equal(await times(f, 1), 0);
      await pause(250);
      assert.equal(await times(f, 1), 0);
    });

    it('takes the age of an item', async function () {
      const f = make({max: 10, itemMaxAge: n => n === 1 ? 60 : n === 2 ? 0 : n === 3 ? undefined : 60000});
      await all(f, 1, 2, 3, 4);
      await pause(120);
      assert.equal(await times(f, 2, 3, 4), 0);
      assert.equal(await times(f, 1), 1);
    });

    it('falls back to the age of all', async function () {
      const f = make({max: 10, maxAge: 60, itemMaxAge: n => n === 1 ? 0 : n === 2 ? undefined : 60000});
      await all(f, 1, 2, 3);
      await pause(120);
      assert.equal(await times(f, 3), 0);
      assert.equal(await times(f, 1, 2), 2);
    });
  });

  for (const noDisposeOnSet of [false, true])
    it(`replaces with noDisposeOnSet ${noDisposeOnSet}`, function () {
      const left = [], waiting = [];
      const f = memoizer({
        load: (n, done) => waiting.push(done), hash: n => `k${n}`, queueMaxAge: -1, max: 5, noDisposeOnSet,
        dispose: (key, value) => left.push([key, value]),
      });
      f(1, () => {});
      f(1, () => {});
      waiting[0](null, 'first', 'more');
      waiting[1](null, 'second');
      assert.deepEqual(left, noDisposeOnSet ? [] : [['k1', ['first', 'more']]]);
    });
});
