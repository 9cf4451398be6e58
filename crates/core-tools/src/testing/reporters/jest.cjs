// A reporter of jest: what happens, when it happens, one JSON object a line.
const fs = require("node:fs");

const to = fs.openSync(process.env.CORE_TOOLS_EVENTS, "a");
const write = (event) => fs.writeSync(to, JSON.stringify(event) + "\n");
const name = (test) => [...test.ancestorTitles, test.title].join(" > ");
const statuses = { passed: "passed", failed: "failed" };

module.exports = class {
  onTestCaseStart(file, test) {
    write({ event: "start", name: name(test) });
  }
  onTestFileResult(file, result) {
    for (const test of result.testResults) {
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
