// A reporter for jest. It writes each event when it happens, as one JSON object a line.
const { runs, write } = require("./events.cjs");

const name = (test) => [...test.ancestorTitles, test.title].join(" > ");
const statuses = { passed: "passed", failed: "failed" };

// How often each result was reported when its test ended.
const done = new Map();
// Tests that failed and may be run again (`jest.retryTimes`): the end of the file has their result.
const failed = new Set();
const report = (file, test) => {
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
    attempts: test.invocations,
  });
};

module.exports = class {
  onRunStart() {
    // A program may run jest again after a run has ended.
    done.clear();
    failed.clear();
  }
  onTestCaseStart(file, test) {
    if (!failed.has(`${file.path} ${name(test)}`)) write({ event: "start", name: name(test) });
  }
  // Results are written as tests end, so that a run that breaks off keeps them.
  onTestCaseResult(file, test) {
    if (test.status === "failed") {
      failed.add(`${file.path} ${name(test)}`);
      return;
    }
    const key = `${file.path} ${test.status} ${name(test)}`;
    done.set(key, (done.get(key) ?? 0) + 1);
    report(file, test);
  }
  onTestFileResult(file, result) {
    for (const test of result.testResults) {
      const key = `${file.path} ${test.status} ${name(test)}`;
      const times = done.get(key) ?? 0;
      // Tests that do not run, and all tests of older versions, are reported only here.
      if (times > 0) done.set(key, times - 1);
      else report(file, test);
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
    runs.isActive = false;
  }
};
