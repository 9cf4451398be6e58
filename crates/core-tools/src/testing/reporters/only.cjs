// Tells that `.only` kept tests from running. Runners call such a run a success, and some list the other tests as skipped.
const { readFileSync } = require("node:fs");
const path = require("node:path");
const { write } = require("./events.cjs");

const MAX_FILES = 5;
const FOCUS = /(?<![.\w])(?:(?:describe|context|suite|it|test|specify|bench)(?:\.\w+)*\.only\b|(?:fdescribe|fit)\s*\(\s*["'`])/;

// Returns the number of the line in which a file narrows its tests. A line of comment is none.
const focusedLine = (file) => {
  try {
    const lines = readFileSync(file, "utf8").split("\n");
    return lines.findIndex((line) => !/^\s*(\/\/|\/?\*)/.test(line) && FOCUS.test(line)) + 1;
  } catch {
    return 0;
  }
};

const told = (ran, all, why) => {
  write({ event: "note", message: `only ${ran} of ${all} tests ran because of ${why}` });
};

// Tells it of runners that report the other tests as skipped, and not why: `files` has the number of all tests and of
// those that ran, by file.
const ofFiles = (files) => {
  const focused = [];
  for (const [file, counts] of files) {
    if (counts.ran < counts.all) focused.push({ file, line: focusedLine(file), ...counts });
  }
  const found = focused.filter(({ line }) => line > 0);
  if (found.length === 0) return;
  const named = found.slice(0, MAX_FILES).map(({ file, line }) => `${path.relative(process.cwd(), file)}:${line}`);
  const more = found.length > MAX_FILES ? ` and ${found.length - MAX_FILES} more files` : "";
  const sum = (what) => found.reduce((sum, one) => sum + one[what], 0);
  told(sum("ran"), sum("all"), `\`.only\` (${named.join(", ")}${more})`);
};

module.exports = { told, ofFiles };
