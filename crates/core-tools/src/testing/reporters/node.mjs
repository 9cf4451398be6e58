// A reporter of `node --test`: what happens, when it happens, one JSON object a line.
// A file is told as a test with its path for a name.
const isFile = ({ file, name, nesting }) => nesting === 0 && file && (name === file || file.endsWith("/" + name));

export default async function* (source) {
  const line = (event) => JSON.stringify(event) + "\n";
  const names = [];
  const begun = new Map();
  for await (const { type, data } of source) {
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
      yield line({ event: "start", name: running.filter(Boolean).join(" > ") });
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
      }
      continue;
    }
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
  yield line({ event: "end" });
}
