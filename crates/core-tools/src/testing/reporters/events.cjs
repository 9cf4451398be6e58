// Writes events to the file beside this one, each as a line of JSON.
const { openSync, writeSync } = require("node:fs");
const path = require("node:path");

const MAX_LENGTH = 64 * 1024;
const LONE_SURROGATE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

const cut = (text) =>
  text.length <= MAX_LENGTH
    ? text
    : `${text.slice(0, MAX_LENGTH / 2)}[... ${text.length - MAX_LENGTH} characters left out ...]${text.slice(-MAX_LENGTH / 2)}`;
const readable = (_, value) => (typeof value === "string" ? cut(value).replace(LONE_SURROGATE, "\ufffd") : value);

// The process whose events these are, where several of one run report.
let run;
// Opened at once: a test may remove the folder for temporary files.
const open = () => {
  try {
    return openSync(path.join(__dirname, "events"), "a");
  } catch {
    return undefined;
  }
};
let file = open();
// Lines that could not be written yet: a test may stand in for the file system while it runs.
let waiting = "";

// Returns an event as a line that any reader of JSON takes: without lone surrogates, and with text cut where it is far
// longer than what a report shows of it.
const line = (event) => JSON.stringify(run === undefined ? event : { ...event, run }, readable) + "\n";

// The runs of one process, one after the other: is one of them on, and how many tests have those before it planned?
const runs = { isActive: false, planned: 0 };

// A test may replace functions of `fs`, so that these are the ones from before.
const write = (event) => {
  waiting += line(event);
  try {
    file ??= open();
    writeSync(file, waiting);
    waiting = "";
  } catch {
    // The next event tries again, and so does the end of the process.
  }
};

module.exports = {
  line,
  runs,
  write,
  setRun(id) {
    run = id;
  },
};
