// A reporter of `node --test`: what happens, when it happens, one JSON object a line.
import fs from "node:fs";
import line from "./line.cjs";

// A file is told as a test with its path for a name, at its very beginning.
const isFile = ({ file, name, nesting, line = 1, column = 1 }) =>
  nesting === 0 && file && line === 1 && column === 1 && (name === file || file.endsWith("/" + name));
// Later versions tell nothing of tests that a pattern leaves out.
const isFiltered = process.execArgv.some((option) => /^--test-(name-pattern|skip-pattern|only)/.test(option));
const definesTests = (file) => {
  try {
    const text = fs.readFileSync(file, "utf8");
    return /["']node:test["']/.test(text) && /\b(test|it|suite|describe)(\.\w+)?\s*\(/.test(text);
  } catch {
    return false;
  }
};

export default async function* (source) {
  const names = [];
  const begun = new Map();
  // Of each file, how many tests there are and how many have ended.
  const files = new Map();
  const count = (data, what) => {
    const counts = files.get(data.file) ?? { enqueued: 0, ended: 0 };
    files.set(data.file, counts);
    counts[what] += 1;
  };
  const open = new Set();
  for await (const { type, data } of source) {
    if (type === "test:enqueue" && !isFile(data)) count(data, "enqueued");
    // Before it runs; `test:start` comes with its result.
    if (type === "test:dequeue" && !isFile(data)) {
      const running = begun.get(data.file) ?? [];
      begun.set(data.file, running);
      // What has tests within is told by them.
      if (running.length >= data.nesting && data.nesting > 0) {
        yield line({ event: "left", name: running.slice(0, data.nesting).join(" > ") });
      }
      running.length = data.nesting;
      running.push(data.name);
      const name = running.filter(Boolean).join(" > ");
      open.add(name);
      yield line({ event: "start", name });
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
        yield line({ event: "problem", kind: "collection_error", message: `${data.file}: ${message}` });
      } else if (!failed && !files.has(data.file)) {
        // It counts as a test that passed, also where `process.exit()` ended it.
        if (!isFiltered && definesTests(data.file)) {
          yield line({ event: "problem", kind: "crashed", message: `${data.file}: it ended before it told any of its tests` });
        } else {
          yield line({ event: "test", name: data.name, status: "skipped", error: "there is no test in it", file: data.file });
        }
      }
      continue;
    }
    count(data, "ended");
    // Suites, and tests with subtests that failed, are told by what is in them.
    if (code === "subtestsFailed" || (details.type === "suite" && !failed)) {
      yield line({ event: "left", name });
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
    yield line({
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
      yield line({ event: "problem", kind: "crashed", message });
    }
  }
  // Names of tests that run at once are not sure: the counts above tell what has not ended.
  for (const name of open) yield line({ event: "left", name });
  yield line({ event: "end" });
}
