// A reporter for jest. It writes each event when it happens, as one JSON object a line.
const { runs, write } = require("./events.cjs");
const only = require("./only.cjs");

const name = (test) => [...test.ancestorTitles, test.title].join(" > ");
const statuses = { passed: "passed", failed: "failed" };

// How often each result was reported when its test ended.
const done = new Map();
// Tests that failed and may be run again (`jest.retryTimes`): the end of the file has their result.
const failed = new Set();
// The number of tests of each file, and of those that ran.
const files = new Map();
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
    files.clear();
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
    const ran = result.testResults.filter((test) => statuses[test.status]).length;
    files.set(file.path, { ran, all: result.testResults.length });
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
    only.ofFiles(files);
    // `--bail` leaves out the files that had not begun.
    const { numTotalTestSuites: all, numPassedTestSuites, numFailedTestSuites, numPendingTestSuites } = results;
    const begun = numPassedTestSuites + numFailedTestSuites + numPendingTestSuites;
    if (begun < all) write({ event: "note", message: `${all - begun} of ${all} test files did not run` });
    if (results.runExecError) {
      write({ event: "problem", kind: "runner_failed", message: results.runExecError.message });
    }
    write({ event: "end" });
    runs.isActive = false;
  }
};
