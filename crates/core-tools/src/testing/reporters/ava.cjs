// A reporter for AVA. It listens to the run that AVA's own reporter is given, and writes each event when it happens, as
// one JSON object a line.
const path = require("node:path");
const { write } = require("./events.cjs");
const only = require("./only.cjs");

const text = (error) => error?.stack ?? error?.formattedError ?? error?.message ?? String(error ?? "");
// The place in the test's own file at which it failed.
const line = (error, file) => {
  // A file of AVA's own may have the same name.
  const places = [`${file}:`, ` ${path.relative(process.cwd(), file)}:`, `(${path.relative(process.cwd(), file)}:`];
  const own = text(error).split("\n").find((at) => places.some((place) => ` ${at}`.includes(place)));
  const found = own && /:(\d+):\d+\)?$/.exec(own.trim());
  const source = error?.source;
  return source?.file?.endsWith(file) ? source.line : found ? Number(found[1]) : undefined;
};
const details = (error) =>
  [error.message, ...(error.formattedDetails ?? []).map(({ label, formatted }) => `${label}\n${formatted}`), text(error)]
    .filter(Boolean)
    .join("\n");

const tellLeftOut = ({ declaredTests, selectedTests, remainingTests, files, finishedWorkers, parallelRuns }, isFailFast) => {
  if (parallelRuns) {
    const { currentFileCount, currentIndex, totalRuns } = parallelRuns;
    write({ event: "note", message: `only ${currentFileCount} of ${files} test files ran: AVA takes the part of job ${currentIndex + 1} of ${totalRuns}` });
  }
  if (selectedTests < declaredTests) {
    only.told(selectedTests, declaredTests, "`.only`, `--match` or line numbers");
    write({ event: "deselected", tests: declaredTests - selectedTests });
  }
  if (!isFailFast) return;
  // The files that had not begun tell no tests.
  if (remainingTests > 0) write({ event: "note", message: `at least ${remainingTests} tests did not run` });
  if (finishedWorkers < files && !parallelRuns) write({ event: "note", message: `${files - finishedWorkers} of ${files} test files did not run to their end` });
};

// `name` gives the name that AVA's own reporters give a test. Returns what is to be called when the run has ended.
module.exports = (plan, name) => {
  const missing = new Set();
  const test = (event, status, error) => {
    write({
      event: "test",
      name: name(event),
      status,
      duration_ms: event.duration,
      error: error && details(error),
      file: event.testFile,
      line: error && line(error, event.testFile),
    });
  };
  const problem = (kind, message) => write({ event: "problem", kind, message });
  let hasEnded = false;
  const end = () => {
    if (hasEnded) return;
    hasEnded = true;
    tellLeftOut(plan.status.stats, plan.failFastEnabled);
    write({ event: "end" });
  };
  const relative = (file) => path.relative(process.cwd(), file ?? "");
  plan.status.on("stateChange", (event) => {
    const pending = (status, message) => {
      for (const [testFile, titles] of event.pendingTests ?? []) {
        for (const title of titles) test({ testFile, title }, status, { message });
      }
    };
    switch (event.type) {
      case "selected-test":
        if (event.skip || event.todo) test(event, "skipped");
        else write({ event: "start", name: name(event) });
        break;
      case "test-passed":
        test(event, "passed");
        break;
      case "test-failed":
        test(event, "failed", event.err);
        break;
      case "hook-failed":
        test(event, "errored", event.err);
        break;
      case "timeout":
        pending("timed_out", `it was running when no test had ended for ${event.period} ms`);
        if (!event.pendingTests?.size) problem("runner_failed", `no test ended for ${event.period} ms`);
        break;
      case "process-exit":
        pending("errored", "it was running when `process.exit()` was called");
        problem("crashed", `${relative(event.testFile)}: it called \`process.exit()\``);
        break;
      case "missing-ava-import":
        missing.add(event.testFile);
        problem("collection_error", `${relative(event.testFile)}: it does not import "ava"`);
        break;
      case "internal-error":
        problem("runner_failed", text(event.err));
        break;
      case "uncaught-exception":
      case "unhandled-rejection":
        problem("collection_error", `${relative(event.testFile)}: ${text(event.err)}`);
        break;
      case "worker-failed":
        if (!missing.has(event.testFile)) {
          const how = event.nonZeroExitCode ? `exit code ${event.nonZeroExitCode}` : event.signal;
          problem(event.nonZeroExitCode ? "collection_error" : "crashed", `${relative(event.testFile)} ended with ${how}`);
        }
        break;
      case "end":
      case "interrupt":
        end();
        break;
    }
  });
  return end;
};
