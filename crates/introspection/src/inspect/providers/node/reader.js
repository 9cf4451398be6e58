// Looks at objects of the application without running anything of it: syntax, and built-in functions that were
// checked to be the engine's own before they came here. What it makes has no prototype, so that nothing that the
// application has put into Object.prototype or Array.prototype takes part.
//
// No proxy may come here but through isProxy: every operation on one would run its traps.
function (
  ownKeys, describe, prototypeOf, define, detach, apply, Seen, mapGet, mapSet, mapHas, mapEntries, mapNext,
  setValues, setNext, getTime, textOf, includes, numberOf, booleanOf, isProxy, isError,
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

  const isOwnCode = (found) =>
    found !== undefined && found.get !== undefined && !apply(includes, apply(textOf, found.get, []), ['[native code]']);

  // Whether the inspector would run the application's code to name a value: it asks an error for its stack, and any
  // object's prototypes for a class.
  const isTrap = (value) => {
    if (isProxy === undefined || value === null || (typeof value !== 'object' && typeof value !== 'function')) return false;
    if (isProxy(value)) return false;
    const asked = isError(value);
    for (let at = value, n = 0; at !== null && n < 64; n++) {
      if (isProxy(at)) return true;
      if (asked && (isOwnCode(own(at, 'stack')) || isOwnCode(own(at, 'message')) || isOwnCode(own(at, 'name')))) return true;
      at = prototypeOf(at);
    }
    return false;
  };

  const isIndex = (key) => typeof key === 'string' && +key >= 0 && +key % 1 === 0 && '' + +key === key;

  // Whether a function has properties that somebody gave it. What it has by itself is not enumerable.
  const isOpened = (value) => {
    if (typeof value !== 'function' || isProxy === undefined || isProxy(value)) return false;
    const keys = ownKeys(value);
    for (let at = 0; at < keys.length && at < 100; at++) {
      const found = own(value, keys[at]);
      if (found !== undefined && found.enumerable) return true;
    }
    return false;
  };

  // What kind of property it is, and its value: 1 has one, 2 is a getter, 3 a setter without one, 4 may not be named,
  // 5 is a function with properties.
  const copy = (list, at, found, most, more = 0) => {
    const has = 'value' in found;
    const trap = has && isTrap(found.value);
    const kind = trap ? 4 : has ? (isOpened(found.value) ? 5 : 1) : found.get === undefined ? 3 : 2;
    put(list, at, kind + more);
    put(list, at + 1, has && !trap ? cut(found.value, most) : undefined);
  };

  const copyValue = (list, at, value, most) => copy(list, at, { __proto__: null, value }, most);

  const entryOf = (map, key) => {
    if (apply(mapHas, map, [key])) return { __proto__: null, value: apply(mapGet, map, [key]) };
    // `[1]` is the entry of the number, and that of the text if there is none; `["1"]` is the other way round.
    if (typeof key === 'number') {
      const text = '' + key;
      return apply(mapHas, map, [text]) ? { __proto__: null, value: apply(mapGet, map, [text]) } : undefined;
    }
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
    if (isTrap(value) || (typeof value === 'string' && value.length > most)) throw 0;
    return value;
  };

  // One step: the kind and value of what is there, or [0, the prototype], in which to look further.
  const look = (object, key, most) => {
    const seen = { __proto__: null };
    const found = own(object, key) ?? entry(object, key);
    if (found === undefined) {
      put(seen, 0, 0);
      put(seen, 1, prototypeOf(object));
    } else copy(seen, 0, found, most);
    return seen;
  };

  // The properties that a list or a function has beside its elements, behind the `taken` members of `list`: their
  // kinds are 10 higher. The number of those that are left out has the kind 20.
  const copyBeside = (list, taken, object, count, most) => {
    const keys = ownKeys(object);
    let at = taken;
    let left = 0;
    for (let n = 0; n < keys.length; n++) {
      if (isIndex(keys[n])) continue;
      const found = own(object, keys[n]);
      if (found === undefined || !found.enumerable) continue;
      if (at - taken >= count) {
        left++;
        continue;
      }
      put(list, 3 * at + 1, cut(keys[n], most));
      copy(list, 3 * at + 2, found, most, 10);
      at++;
    }
    if (left === 0) return;
    put(list, 3 * at + 1, '');
    put(list, 3 * at + 2, 20);
    put(list, 3 * at + 3, left);
  };

  // A property of an error that is not enumerable, and says what went wrong.
  const copyHidden = (list, taken, object, key, most) => {
    const found = own(object, key);
    if (found === undefined || found.enumerable) return taken;
    put(list, 3 * taken + 1, key);
    copy(list, 3 * taken + 2, found, most);
    return taken + 1;
  };

  const isLetter = (char) => (char >= 'a' && char <= 'z') || (char >= 'A' && char <= 'Z') || char === '_' || char === '$';

  // The names of the private fields that the text of a class declares, each behind a brace, a semicolon or a line end.
  const privateNames = (text) => {
    let names = '';
    let last = '{';
    for (let at = 0; at < text.length && at < 100000; at++) {
      const char = text[at];
      if (char === '#' && (last === '{' || last === '}' || last === ';' || last === '\n') && isLetter(text[at + 1])) {
        let end = at + 1;
        while (end < text.length && (isLetter(text[end]) || (text[end] >= '0' && text[end] <= '9'))) end++;
        let name = '';
        for (let part = at; part < end; part++) name += text[part];
        names += names === '' ? name : ', ' + name;
        at = end - 1;
        last = '#';
      } else if (char !== ' ' && char !== '\t' && char !== '\r') last = char;
    }
    return names;
  };

  // What an object has by its classes, behind the `taken` members of `list`: the names of getters, which are not run, with
  // the kind 21, and of private fields, which nothing but its own code reads, with the kind 22.
  const copyOfClass = (list, taken, object) => {
    let getters = '';
    let fields = '';
    let at = prototypeOf(object);
    for (let n = 0; at !== null && n < 8; n++) {
      if (isProxy === undefined || isProxy(at)) break;
      const above = prototypeOf(at);
      if (above === null) break;
      const keys = ownKeys(at);
      for (let key = 0; key < keys.length && key < 100; key++) {
        if (typeof keys[key] === 'string' && isOwnCode(own(at, keys[key]))) {
          getters += getters === '' ? keys[key] : ', ' + keys[key];
        }
      }
      const maker = own(at, 'constructor')?.value;
      if (typeof maker === 'function' && !isProxy(maker)) {
        const text = apply(textOf, maker, []);
        if (apply(includes, text, ['#'])) {
          const names = privateNames(text);
          if (names !== '') fields += fields === '' ? names : ', ' + names;
        }
      }
      at = above;
    }
    let behind = taken;
    for (let kind = 21; kind <= 22; kind++) {
      const names = kind === 21 ? getters : fields;
      if (names === '') continue;
      put(list, 3 * behind + 1, '');
      put(list, 3 * behind + 2, kind);
      put(list, 3 * behind + 3, cut(names, 2000));
      behind++;
    }
  };

  // The value of a Number or Boolean object; undefined if it is none.
  const unboxed = (object, kind) => {
    try {
      return apply(kind === 'Number' ? numberOf : booleanOf, object, []);
    } catch {
      return undefined;
    }
  };

  let known;

  // The content of an object: [how many, key, kind, value, key, …], at most `count` of them. A number in its
  // place where it was taken before in the same reading, which one with `fresh` begins.
  const take = (object, kind, length, count, most, fresh) => {
    if (fresh) known = { __proto__: null, at: new Seen(), size: 0 };
    const before = apply(mapGet, known.at, [object]);
    if (before !== undefined) return before;
    apply(mapSet, known.at, [object, known.size++]);
    const list = { __proto__: null };
    let total = 0;
    if (typeof object === 'function' && (isProxy === undefined || isProxy(object))) {
      put(list, 0, 0);
      return list;
    }
    if (kind === 'map' || kind === 'set') {
      const items = kind === 'map' ? apply(mapEntries, object, []) : apply(setValues, object, []);
      for (; total < count; total++) {
        const item = apply(kind === 'map' ? mapNext : setNext, items, []);
        if (item.done) break;
        const key = kind === 'map' ? item.value[0] : undefined;
        put(list, 3 * total + 1, isTrap(key) ? 'a key' : cut(key, most));
        copyValue(list, 3 * total + 2, kind === 'map' ? item.value[1] : item.value, most);
      }
      copyBeside(list, total, object, count, most);
      total = length;
    } else if (kind === 'array' || kind === 'typedarray') {
      for (let at = 0; at < length && at < count; at++) {
        const found = own(object, at);
        if (found === undefined) continue;
        put(list, 3 * at + 1, at);
        copy(list, 3 * at + 2, found, most);
      }
      // The names of a long list would take too long to go through.
      if (length <= 100000) copyBeside(list, length < count ? length : count, object, count, most);
      total = length;
    } else {
      const keys = ownKeys(object);
      let taken = 0;
      let hidden = 0;
      if (kind === 'error') {
        taken = copyHidden(list, taken, object, 'cause', most);
        taken = copyHidden(list, taken, object, 'errors', most);
        hidden = -taken;
      } else if (kind === 'Number' || kind === 'Boolean') {
        const value = unboxed(object, kind);
        if (value !== undefined) {
          put(list, 1, '$value');
          copyValue(list, 2, value, most);
          taken = 1;
          hidden = -1;
        }
      }
      for (let at = 0; at < keys.length && taken < count && at < 10000; at++) {
        const found = own(object, keys[at]);
        if (found === undefined || !found.enumerable) {
          hidden++;
          continue;
        }
        put(list, 3 * taken + 1, cut(keys[at], most));
        copy(list, 3 * taken + 2, found, most);
        taken++;
      }
      total = keys.length - hidden;
      if (typeof object !== 'function' && kind !== 'date' && kind !== 'Number' && kind !== 'Boolean') copyOfClass(list, taken, object);
    }
    put(list, 0, kind === 'date' ? apply(getTime, object, []) : total);
    return list;
  };

  // The functions of an array whose text stands in `source`.
  const among = (list, source, most) => {
    const found = { __proto__: null };
    for (let at = 0, taken = 0; at < list.length && taken < most; at++) {
      // What inherits from a function need not be one.
      if (typeof list[at] !== 'function') continue;
      if (apply(includes, source, [apply(textOf, list[at], [])])) put(found, taken++, list[at]);
    }
    return found;
  };

  const forget = () => {
    known = undefined;
  };

  return { __proto__: null, find: isProxy === undefined ? undefined : find, look, take, among, forget };
}
