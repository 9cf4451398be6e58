// An application to be profiled: it computes, keeps things, serves and asks.
const http = require('http');
const channels = require('diagnostics_channel');

class CartItem {
  constructor(id) {
    this.id = id;
    this.name = 'item ' + id;
  }
}
const cart = [];
let held = 0;

function burnTheProcessor(milliseconds) {
  const end = Date.now() + milliseconds;
  let sum = 0;
  while (Date.now() < end) for (let i = 0; i < 1000; i++) sum += Math.sqrt(i);
  return sum;
}
// A name that would break lines, stacks and markup.
const hostile = {
  'evil;\n<script>alert(1)</script>'() {
    return burnTheProcessor(5);
  },
};
function keepItems() {
  for (let i = 0; i < 200; i++) cart.push(new CartItem(cart.length));
}

const server = http.createServer((request, response) => {
  const path = request.url.split('?')[0];
  if (path === '/subscribers') {
    const names = ['http.server.request.start', 'http.client.request.start', 'undici:request:create', 'net.client.socket'];
    response.end(JSON.stringify(names.filter((name) => channels.channel(name).hasSubscribers)));
  } else if (path === '/never') {
    held++;
  } else if (path === '/held') {
    response.end(String(held));
  } else if (path === '/slow') {
    setTimeout(() => response.end('slow'), 120);
  } else if (path === '/broken') {
    response.statusCode = 503;
    response.end('broken');
  } else if (path === '/exit') {
    response.end('bye', () => setImmediate(() => process.exit(0)));
  } else {
    response.end('fast');
  }
});
server.listen(0, '127.0.0.1', () => {
  const port = server.address().port;
  const quiet = process.argv.includes('quiet');
  let turn = 0;
  setInterval(() => {
    if (quiet) return;
    burnTheProcessor(20);
    hostile['evil;\n<script>alert(1)</script>']();
    if (cart.length < 20000) keepItems();
  }, 50);
  setInterval(() => {
    turn++;
    if (quiet) return;
    const ask = (path) => {
      const headers = { authorization: 'Bearer sesame-header', cookie: 'session=sesame-cookie' };
      http.get({ port, host: '127.0.0.1', path, headers }, (response) => response.resume()).on('error', () => {});
    };
    ask('/users/' + turn + '?token=sesame-query');
    ask('/slow?x=sesame-query');
    ask('/broken');
    fetch('http://127.0.0.1:' + port + '/fetched?x=sesame-query').then((r) => r.text()).catch(() => {});
  }, 60);
  console.log('ready ' + port);
});
