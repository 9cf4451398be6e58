// Listens to HTTP in the process it is evaluated in, by node:diagnostics_channel, and forgets itself: when told to,
// or by itself when nobody has come back. Never keeps a query, a header or a body. Each listener is wrapped, so that
// nothing it does reaches the application.
(function (most, life) {
  const get = process.getBuiltinModule || (process.mainModule && process.mainModule.require.bind(process.mainModule));
  const channels = get && get('diagnostics_channel');
  if (!channels || !channels.subscribe) throw new Error('no diagnostics_channel here');
  const clock = () => Number(process.hrtime.bigint() / 1000n) / 1000;
  const subscribed = [], open = new Map(), weak = new WeakMap();
  let done = [], dropped = 0, sockets = [0, 0];
  const on = (name, listener) => {
    const wrapped = (message) => { try { listener(message); } catch {} };
    channels.subscribe(name, wrapped);
    subscribed.push([name, wrapped]);
  };
  const path = (url) => String(url || '/').replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '').split(/[?#]/, 1)[0].slice(0, 300);
  const host = (name) => String(name || '').replace(/^[a-z][a-z0-9+.-]*:\/\//i, '').split('@').pop().split('/')[0].slice(0, 100);
  // The end of `stream` ends the request: no channel tells that the other side went away.
  const begin = (key, entry, stream) => {
    if (open.size >= most) { dropped++; return; }
    entry.t = clock();
    weak.set(key, entry);
    open.set(entry, stream && new WeakRef(stream));
  };
  const finish = (entry, add) => {
    if (!entry || !open.delete(entry)) return;
    Object.assign(entry, add);
    entry.d = clock() - entry.t;
    if (done.length < most) done.push(entry); else dropped++;
  };
  const end = (key, add) => {
    finish(weak.get(key), add);
    weak.delete(key);
  };
  const endAborted = () => {
    for (const [entry, reference] of open) {
      const stream = reference && reference.deref();
      if (reference && (!stream || stream.destroyed)) finish(entry, { e: 'aborted' });
    }
  };
  const failure = (error) => String((error && (error.code || error.name)) || 'error').slice(0, 60);
  on('http.server.request.start', (m) => begin(m.request, { k: 'in', m: m.request.method, p: path(m.request.url) }, m.socket || m.request.socket));
  on('http.server.response.finish', (m) => end(m.request, { s: m.response.statusCode }));
  on('http.client.request.start', (m) => begin(m.request, {
    k: 'out', m: m.request.method, h: host(m.request.getHeader('host') || m.request.host), p: path(m.request.path) }, m.request));
  on('http.client.response.finish', (m) => end(m.request, { s: m.response.statusCode }));
  on('http.client.request.error', (m) => end(m.request, { e: failure(m.error) }));
  on('undici:request:create', (m) => begin(m.request, {
    k: 'out', m: m.request.method, h: host(m.request.origin), p: path(m.request.path) }));
  on('undici:request:headers', (m) => { const entry = weak.get(m.request); if (entry) entry.s = m.response.statusCode; });
  on('undici:request:trailers', (m) => end(m.request, {}));
  on('undici:request:error', (m) => end(m.request, { e: failure(m.error) }));
  on('net.client.socket', () => { sockets[0]++; });
  on('net.server.socket', () => { sockets[1]++; });
  const stop = () => {
    clearTimeout(timer);
    for (const [name, listener] of subscribed.splice(0)) channels.unsubscribe(name, listener);
  };
  const timer = setTimeout(stop, life);
  timer.unref();
  const drain = (last) => {
    const now = clock(), pending = [];
    endAborted();
    if (last) { stop(); for (const entry of open.keys()) pending.push({ ...entry, d: now - entry.t }); }
    const events = done;
    done = [];
    return JSON.stringify({ events, pending, dropped, sockets });
  };
  return { drain };
})
