// A reporter for vitest 3 and later. It writes each event when it happens, as one JSON object a line.
import events from "./events.cjs";
import only from "./only.cjs";

const { write } = events;
const text = (error) => error?.stack ?? error?.message ?? String(error);
// Returns the line of the test file at which the error arose.
const line = (error, file) => {
  const own = (error?.stack ?? "").split("\n").find((at) => at.includes(`${file}:`));
  return own ? Number(own.split(`${file}:`)[1].split(":")[0]) : undefined;
};

export default class {
  onTestRunStart(specifications) {
    this.files = specifications.length;
  }
  onTestCaseReady(test) {
    write({ event: "start", name: test.fullName });
  }
  onTestCaseResult(test) {
    const result = test.result();
    const diagnostic = test.diagnostic();
    const status = { passed: "passed", failed: "failed" }[result.state] ?? "skipped";
    const errors = result.errors ?? [];
    const timeout = errors.some((error) => /^Test timed out in /.test(error.message ?? ""));
    write({
      event: "test",
      name: test.fullName,
      status: timeout ? "timed_out" : status,
      duration_ms: diagnostic?.duration,
      error: status === "failed" ? errors.map((error) => error.message + "\n" + (error.stack ?? "")).join("\n") : result.note,
      file: test.module.moduleId,
      line: line(errors[0], test.module.moduleId) ?? test.location?.line,
      attempts: (diagnostic?.retryCount ?? 0) + 1,
    });
  }
  onTestRunEnd(modules, unhandled) {
    // Not at the end of each module: a module that cannot be loaded has no such event.
    for (const module of modules) {
      for (const error of module.errors()) {
        write({ event: "problem", kind: "collection_error", message: `${module.moduleId}: ${text(error)}` });
      }
      for (const suite of module.children.allSuites()) {
        for (const error of suite.errors()) {
          write({ event: "problem", kind: "runner_failed", message: `${suite.fullName}: ${text(error)}` });
        }
      }
    }
    const files = new Map();
    for (const module of modules) {
      const tests = [...module.children.allTests()];
      const ran = tests.filter((test) => ["passed", "failed"].includes(test.result().state)).length;
      files.set(module.moduleId, { ran, all: tests.length });
    }
    only.ofFiles(files);
    // `--bail` leaves out the files that had not begun.
    const left = this.files - modules.length;
    if (left > 0) write({ event: "note", message: `${left} of ${this.files} test files did not run` });
    for (const error of unhandled) {
      write({ event: "problem", kind: "runner_failed", message: `unhandled error: ${text(error)}` });
    }
    write({ event: "end" });
  }
}
