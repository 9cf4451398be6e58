// A reporter of `node --test`: what happens, when it happens, one JSON object a line.
export default async function* (source) {
  const line = (event) => JSON.stringify(event) + "\n";
  const names = [];
  for await (const { type, data } of source) {
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
    // A file is told as a test with its path for a name; suites, and tests with subtests, by what is in them.
    const file = data.file && (data.name === data.file || data.file.endsWith("/" + data.name));
    if (file && data.nesting === 0) {
      if (failed && code !== "subtestsFailed") {
        const message = error?.cause?.stack ?? error?.cause?.message ?? error?.cause ?? error?.message;
        yield line({ event: "problem", kind: "collection_error", message: `${data.file}: ${message}` });
      }
      continue;
    }
    if (details.type === "suite" && !(failed && code !== "subtestsFailed")) continue;
    if (code === "subtestsFailed") continue;
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
