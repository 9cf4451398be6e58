// Run in a folder with `npm install pino@10.4 bunyan@2.0 winston@3.19`: node node.cjs pino|bunyan|winston > FILE
const kind = process.argv[2];
const declined = new Error('card declined');
const say = (log, object) => {
  object(log, 'debug', { key: 'user:7' }, 'cache miss');
  object(log, 'info', { port: 3000 }, 'listening');
  object(log, 'warn', { ms: 812.5 }, 'slow query');
  object(log, 'error', { err: declined, order: 'o-17' }, 'payment failed');
};
const first = (log, level, fields, message) => log[level](fields, message);
if (kind === 'pino') say(require('pino')({ level: 'debug' }), first);
if (kind === 'bunyan') say(require('bunyan').createLogger({ name: 'shop', level: 'debug' }), first);
if (kind === 'winston') {
  const winston = require('winston');
  const { combine, timestamp, errors, json } = winston.format;
  const log = winston.createLogger({
    level: 'debug',
    format: combine(errors({ stack: true }), timestamp(), json()),
    transports: [new winston.transports.Console()],
  });
  say(log, (log, level, fields, message) => log[level](message, { ...fields, err: fields.err && fields.err.message }));
}
