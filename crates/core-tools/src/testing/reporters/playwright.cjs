// A reporter for Playwright Test. It writes each event when it happens, as one JSON object a line.
const path = require("node:path");
const { write } = require("./events.cjs");

// Not for what the tests start.
delete process.env.PW_TEST_REPORTER;

// The titles of project and suites. The file is a field of its own.
const name = (test) => test.titlePath().filter((title) => title && !test.location.file.endsWith(title)).join(" > ");
const plain = (text) => text?.replace(/\u001b\[[0-9;]*m/g, "");

module.exports = class {
  printsToStdio() {
    return false;
  }
  onBegin(config, suite) {
    const tests = suite.allTests();
    write({ event: "plan", tests: tests.length });
    // The suite has only these tests; how many others there are is not known.
    const isFocused = (one) => Boolean(one && (one._only || isFocused(one.parent)));
    const focused = tests.find(isFocused);
    if (focused) {
      const at = `${path.relative(process.cwd(), focused.location.file)}:${focused.location.line}`;
      write({ event: "note", message: `only ${tests.length} tests ran because of \`.only\` (${at}); Playwright does not tell of the others` });
    }
  }
  onTestBegin(test) {
    write({ event: "start", name: name(test) });
  }
  onTestEnd(test, result) {
    // A test that will be retried has not ended.
    const bad = ["failed", "timedOut", "interrupted"].includes(result.status);
    if (bad && result.retry < test.retries && test.expectedStatus !== result.status) {
      write({ event: "discarded", name: name(test) });
      return;
    }
    const outcome = test.outcome();
    // A test that fails as expected counts as passed, as in the summary of Playwright itself.
    const status = outcome === "skipped" ? "skipped"
      : outcome !== "unexpected" ? "passed"
      : { timedOut: "timed_out", interrupted: "errored" }[result.status] ?? "failed";
    const errors = result.errors.map((error) => plain(error.stack ?? error.message ?? error.value));
    if (status === "failed" && errors.length === 0) errors.push(`expected to be ${test.expectedStatus}, was ${result.status}`);
    const why = test.annotations.find((one) => ["skip", "fixme"].includes(one.type))?.description;
    const own = result.errors.find((error) => error.location?.file === test.location.file);
    write({
      event: "test",
      name: name(test),
      status,
      duration_ms: result.duration,
      error: status === "skipped" ? why : status === "passed" ? undefined : errors.join("\n"),
      file: test.location.file,
      line: own?.location.line ?? test.location.line,
      attempts: outcome === "flaky" || status !== "passed" ? result.retry + 1 : 1,
    });
  }
  onError(error) {
    // `--max-failures` is no error of its own.
    if (/^Testing stopped early after \d+ maximum/.test(plain(error.message ?? ""))) {
      return write({ event: "note", message: plain(error.message) });
    }
    const none = /^Error: No tests found/.test(plain(error.message ?? ""));
    write({ event: "problem", kind: none ? "no_tests" : "collection_error", message: plain(error.stack ?? error.message ?? error.value) });
  }
  onEnd() {
    write({ event: "end" });
  }
};
