// A reporter for `node --test` and for files that use `node:test`. It writes each event when it happens, as one JSON
// object a line.
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import events from "./events.cjs";
import only from "./only.cjs";

const { write } = events;
// In a run of several processes each says whose events these are.
const run = new URL(import.meta.url).searchParams.get("run");
if (run) events.setRun(run);

// A file is reported as a test whose name is its path, at line 1 and column 1.
const isFile = ({ file, name, nesting, line = 1, column = 1 }) =>
  nesting === 0 && file && line === 1 && column === 1 && (name === file || file.endsWith("/" + name));
// Later versions do not report tests that a pattern leaves out.
const isOnly = process.execArgv.includes("--test-only");
const isFiltered = process.execArgv.some((option) => /^--test-(name-pattern|skip-pattern|only)/.test(option));
const namesNodeTest = (file) => {
  try {
    return /["']node:test["']/.test(fs.readFileSync(file, "utf8"));
  } catch {
    return false;
  }
};

const real = (file) => {
  try {
    return fs.realpathSync(file);
  } catch {
    return file;
  }
};

// Returns the files that `process.exit()` ended, as `node_exit.cjs` in their processes told, each with where it was called.
const exitedFiles = () => {
  const exited = new Map();
  try {
    const lines = fs.readFileSync(path.join(path.dirname(fileURLToPath(import.meta.url)), `exits-${process.pid}`), "utf8");
    for (const line of lines.trim().split("\n")) {
      const exit = JSON.parse(line);
      exited.set(real(exit.file), exit);
    }
  } catch {
    // None did.
  }
  return exited;
};

// It yields nothing: the file of events is that of all processes of a run, and node would empty it.
export default async function* (source) {
  const names = [];
  // Of all tests, and of those that `--test-only` left out: node reports those as skipped, or not at all.
  const counts = { all: 0, leftOut: 0 };
  const begun = new Map();
  // The number of tests of each file, and of those that have ended.
  const files = new Map();
  const count = (data, what) => {
    const counts = files.get(data.file) ?? { enqueued: 0, ended: 0 };
    files.set(data.file, counts);
    counts[what] += 1;
  };
  const open = new Set();
  const sum = (what) => [...files.values()].reduce((sum, counts) => sum + counts[what], 0);
  const state = { hasEnded: false, allEnded: () => sum("ended") > 0 && sum("ended") === sum("enqueued") };
  process[Symbol.for("core_tools.reporter")] = state;
  // With `--test-force-exit`, node ends after its last test and before its reporters.
  if (process.execArgv.includes("--test-force-exit")) {
    process.once("exit", () => {
      if (!state.hasEnded && state.allEnded()) write({ event: "end" });
    });
  }
  for await (const { type, data } of source) {
    if (type === "test:enqueue" && !isFile(data)) count(data, "enqueued");
    // This event comes before the test runs; `test:start` comes with its result.
    if (type === "test:dequeue" && !isFile(data)) {
      const running = begun.get(data.file) ?? [];
      begun.set(data.file, running);
      // A test with subtests is reported by them.
      if (running.length >= data.nesting && data.nesting > 0) {
        write({ event: "discarded", name: running.slice(0, data.nesting).join(" > ") });
      }
      running.length = data.nesting;
      running.push(data.name);
      const name = running.filter(Boolean).join(" > ");
      open.add(name);
      write({ event: "start", name });
    }
    if (type === "test:start") {
      names.length = data.nesting;
      names.push(data.name);
    }
    if (type !== "test:pass" && type !== "test:fail") continue;
    names.length = data.nesting;
    const name = [...names.filter(Boolean), data.name].join(" > ");
    const details = data.details ?? {};
    const failed = type === "test:fail";
    const error = details.error;
    const code = error?.failureType;
    if (isFile(data)) {
      if (failed && code !== "subtestsFailed") {
        const message = error?.cause?.stack ?? error?.cause?.message ?? error?.cause ?? error?.message;
        write({ event: "problem", kind: "collection_error", message: `${data.file}: ${message}` });
      } else if (!failed && !files.has(data.file)) {
        // node counts it as a test that passed, even where `process.exit()` ended it.
        const exit = exitedFiles().get(real(data.file));
        const hasTests = exit && (exit.loaded || namesNodeTest(data.file));
        if (hasTests && !(isFiltered && exit.hook)) {
          const message = `${data.file}: \`process.exit()\` ended it before it told any of its tests`;
          write({ event: "problem", kind: "crashed", message });
        } else {
          write({ event: "test", name: data.name, status: "skipped", error: "there is no test in it", file: data.file });
        }
      }
      continue;
    }
    count(data, "ended");
    // Suites, and tests whose subtests failed, are reported by the tests in them.
    if (code === "subtestsFailed" || (details.type === "suite" && !failed)) {
      write({ event: "discarded", name });
      continue;
    }
    let status = failed ? "failed" : "passed";
    if (code === "testTimeoutFailure") status = "timed_out";
    if (code === "cancelledByParent") status = "errored";
    const todo = data.todo !== undefined && data.todo !== false;
    const skip = data.skip !== undefined && data.skip !== false;
    if (todo || skip) status = "skipped";
    const reason = skip ? data.skip : data.todo;
    counts.all += 1;
    if (reason === "'only' option not set") counts.leftOut += 1;
    const cause = error?.cause;
    const text = cause?.stack ?? cause?.message ?? cause ?? error?.message;
    write({
      event: "test",
      name,
      status,
      duration_ms: details.duration_ms,
      error: status === "skipped" ? (typeof reason === "string" ? reason : undefined) : failed ? String(text) : undefined,
      file: data.file,
      line: data.line,
    });
  }
  if (counts.leftOut > 0) only.told(counts.all - counts.leftOut, counts.all, "`--test-only`");
  else if (isOnly) write({ event: "note", message: "`--test-only`: node does not tell of the tests without `only`" });
  const exited = exitedFiles();
  for (const [file, { enqueued, ended }] of files) {
    const exit = exited.get(real(file));
    if (enqueued > ended && !isFiltered) {
      const message = `${file}: it ended before ${enqueued - ended} of its ${enqueued} tests had`;
      write({ event: "problem", kind: "crashed", message });
    } else if (exit && !exit.hook) {
      const message = `${file}: \`process.exit()\` ended it after ${ended} tests; whether it has more is not known`;
      write({ event: "problem", kind: "crashed", message });
    }
  }
  // The names of tests that run at once may be mixed up: the counts above say what has not ended.
  for (const name of open) write({ event: "discarded", name });
  write({ event: "end" });
  state.hasEnded = true;
}
