// Looks at objects of the application without running anything of it: syntax, and built-in functions that were
// checked to be the engine's own before they came here. What it makes has no prototype, so that nothing that the
// application has put into Object.prototype or Array.prototype takes part.
//
// No proxy may come here but through isProxy: every operation on one would run its traps.
function (
  ownKeys, describe, prototypeOf, define, detach, apply, Seen, mapGet, mapSet, mapHas, mapEntries, mapNext,
  setValues, setNext, getTime, textOf, includes, isProxy,
) {
  const own = (object, key) => {
    let found;
    try {
      found = describe(object, key);
    } catch {
      return undefined; // a module's variable that has no value yet
    }
    if (found !== undefined) detach(found, null);
    return found;
  };

  // The first characters and, behind them, how many there were: no text that is not cut is longer than `most`.
  const cut = (value, most) => {
    if (typeof value !== 'string' || value.length <= most) return value;
    let text = '';
    for (let at = 0; at < most; at++) text += value[at];
    return text + value.length;
  };

  const put = (list, at, value) =>
    define(list, at, { __proto__: null, value, enumerable: true, configurable: true, writable: true });

  // An accessor stays one.
  const copy = (list, at, found, most) => {
    if ('value' in found) put(list, at, cut(found.value, most));
    else define(list, at, found);
  };

  const entryOf = (map, key) => {
    if (apply(mapHas, map, [key])) return { __proto__: null, value: apply(mapGet, map, [key]) };
    const number = +key;
    if (key !== '' && number === number && apply(mapHas, map, [number])) {
      return { __proto__: null, value: apply(mapGet, map, [number]) };
    }
    return undefined;
  };

  const entry = (object, key) => {
    try {
      return entryOf(object, key);
    } catch {
      return undefined; // it is no Map
    }
  };

  // The whole way in one call. Whatever is out of the ordinary is thrown, and looked at step by step.
  const find = (from, path, most) => {
    let value = from;
    for (let at = 0; at < path.length; at++) {
      if (value === null || (typeof value !== 'object' && typeof value !== 'function')) throw 0;
      if (isProxy(value)) throw 0;
      const key = path[at];
      let found = own(value, key);
      if (found === undefined) found = entry(value, key);
      for (let above = prototypeOf(value), n = 0; found === undefined && above !== null && n < 64; n++) {
        if (isProxy(above)) throw 0;
        found = own(above, key);
        above = prototypeOf(above);
      }
      if (found === undefined || !('value' in found)) throw 0;
      value = found.value;
    }
    if (typeof value === 'string' && value.length > most) throw 0;
    return value;
  };

  // One step: [1, what is there], or [0, the prototype], in which to look further.
  const look = (object, key, most) => {
    const seen = { __proto__: null };
    const found = own(object, key) ?? entry(object, key);
    put(seen, 0, found === undefined ? 0 : 1);
    if (found === undefined) put(seen, 1, prototypeOf(object));
    else copy(seen, 1, found, most);
    return seen;
  };

  let known;

  // The content of an object: [how many, key, value, key, value, …], at most `count` of them. A number in its
  // place where it was taken before in the same reading, which one with `fresh` begins.
  const take = (object, kind, length, count, most, fresh) => {
    if (fresh) known = { __proto__: null, at: new Seen(), size: 0 };
    const before = apply(mapGet, known.at, [object]);
    if (before !== undefined) return before;
    apply(mapSet, known.at, [object, known.size++]);
    const list = { __proto__: null };
    let total = 0;
    if (kind === 'map' || kind === 'set') {
      const items = kind === 'map' ? apply(mapEntries, object, []) : apply(setValues, object, []);
      for (; total < count; total++) {
        const item = apply(kind === 'map' ? mapNext : setNext, items, []);
        if (item.done) break;
        put(list, 2 * total + 1, kind === 'map' ? cut(item.value[0], most) : undefined);
        put(list, 2 * total + 2, cut(kind === 'map' ? item.value[1] : item.value, most));
      }
      total = length;
    } else if (kind === 'array' || kind === 'typedarray') {
      for (let at = 0; at < length && at < count; at++) {
        const found = own(object, at);
        if (found === undefined) continue;
        put(list, 2 * at + 1, at);
        copy(list, 2 * at + 2, found, most);
      }
      total = length;
    } else {
      const keys = ownKeys(object);
      let hidden = 0;
      let taken = 0;
      for (let at = 0; at < keys.length && taken < count && at < 10000; at++) {
        const found = own(object, keys[at]);
        if (found === undefined || !found.enumerable) {
          hidden++;
          continue;
        }
        put(list, 2 * taken + 1, cut(keys[at], most));
        copy(list, 2 * taken + 2, found, most);
        taken++;
      }
      total = keys.length - hidden;
    }
    put(list, 0, kind === 'date' ? apply(getTime, object, []) : total);
    return list;
  };

  // The functions of an array whose text stands in `source`.
  const among = (list, source, most) => {
    const found = { __proto__: null };
    for (let at = 0, taken = 0; at < list.length && taken < most; at++) {
      if (apply(includes, source, [apply(textOf, list[at], [])])) put(found, taken++, list[at]);
    }
    return found;
  };

  const forget = () => {
    known = undefined;
  };

  return { __proto__: null, find: isProxy === undefined ? undefined : find, look, take, among, forget };
}
