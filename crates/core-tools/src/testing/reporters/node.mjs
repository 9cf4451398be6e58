// A reporter for `node --test` and for files that use `node:test`. It writes each event when it happens, as one JSON
// object a line.
import fs from "node:fs";
import events from "./events.cjs";

const { write } = events;
// In a run of several processes each says whose events these are.
const run = new URL(import.meta.url).searchParams.get("run");
if (run) events.setRun(run);

// A file is reported as a test whose name is its path, at line 1 and column 1.
const isFile = ({ file, name, nesting, line = 1, column = 1 }) =>
  nesting === 0 && file && line === 1 && column === 1 && (name === file || file.endsWith("/" + name));
// Later versions do not report tests that a pattern leaves out.
const isFiltered = process.execArgv.some((option) => /^--test-(name-pattern|skip-pattern|only)/.test(option));
const definesTests = (file) => {
  try {
    const text = fs.readFileSync(file, "utf8");
    return /["']node:test["']/.test(text) && /\b(test|it|suite|describe)(\.\w+)?\s*\(/.test(text);
  } catch {
    return false;
  }
};

// It yields nothing: the file of events is that of all processes of a run, and node would empty it.
export default async function* (source) {
  const names = [];
  const begun = new Map();
  // The number of tests of each file, and of those that have ended.
  const files = new Map();
  const count = (data, what) => {
    const counts = files.get(data.file) ?? { enqueued: 0, ended: 0 };
    files.set(data.file, counts);
    counts[what] += 1;
  };
  const open = new Set();
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
        if (!isFiltered && definesTests(data.file)) {
          write({ event: "problem", kind: "crashed", message: `${data.file}: it ended before it told any of its tests` });
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
  for (const [file, { enqueued, ended }] of files) {
    if (enqueued > ended && !isFiltered) {
      const message = `${file}: it ended before ${enqueued - ended} of its ${enqueued} tests had`;
      write({ event: "problem", kind: "crashed", message });
    }
  }
  // The names of tests that run at once may be mixed up: the counts above say what has not ended.
  for (const name of open) write({ event: "discarded", name });
  write({ event: "end" });
}
