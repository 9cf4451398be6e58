// A reporter of jest: what happens, when it happens, one JSON object a line.
const fs = require("node:fs");
const line = require("./line.cjs");

const to = fs.openSync(process.env.CORE_TOOLS_EVENTS, "a");
const write = (event) => fs.writeSync(to, line(event));
const name = (test) => [...test.ancestorTitles, test.title].join(" > ");
const statuses = { passed: "passed", failed: "failed" };

const done = new Map();
// Failed, and perhaps to be tried again (`jest.retryTimes`): the end of the file says what became of them.
const failed = new Set();
const told = (file, test) => {
  // `skipped` by a name pattern, `pending`, `todo`, `disabled`.
  const status = statuses[test.status] ?? "skipped";
  const error = status === "failed" ? test.failureMessages.join("\n") : undefined;
  write({
    event: "test",
    name: name(test),
    status: /^(.*: )?thrown: "Exceeded timeout of /m.test(error ?? "") ? "timed_out" : status,
    duration_ms: test.duration ?? undefined,
    error,
    file: file.path,
    line: test.location?.line,
  });
};

module.exports = class {
  onTestCaseStart(file, test) {
    if (!failed.has(`${file.path} ${name(test)}`)) write({ event: "start", name: name(test) });
  }
  // Each as it ends, so that a run that breaks off keeps them.
  onTestCaseResult(file, test) {
    if (test.status === "failed") {
      failed.add(`${file.path} ${name(test)}`);
      return;
    }
    const key = `${file.path} ${test.status} ${name(test)}`;
    done.set(key, (done.get(key) ?? 0) + 1);
    told(file, test);
  }
  onTestFileResult(file, result) {
    for (const test of result.testResults) {
      const key = `${file.path} ${test.status} ${name(test)}`;
      const times = done.get(key) ?? 0;
      // Tests that do not run, and those of older runners, are told only here.
      if (times > 0) done.set(key, times - 1);
      else told(file, test);
    }
    if (result.testExecError) {
      const error = result.failureMessage ?? result.testExecError.stack ?? result.testExecError.message;
      write({ event: "problem", kind: "collection_error", message: `${file.path}: ${error}` });
    }
  }
  onRunComplete(contexts, results) {
    const { numPassedTests, numFailedTests, numPendingTests, numTodoTests } = results;
    write({ event: "totals", passed: numPassedTests, failed: numFailedTests, skipped: numPendingTests + numTodoTests });
    if (results.runExecError) {
      write({ event: "problem", kind: "runner_failed", message: results.runExecError.message });
    }
    write({ event: "end" });
  }
};
