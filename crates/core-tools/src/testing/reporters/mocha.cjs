// A reporter for mocha. It writes each event when it happens, as one JSON object a line.
const { runs, write } = require("./events.cjs");
const only = require("./only.cjs");

module.exports = class {
  constructor(runner) {
    // Before version 4, a test does not tell its titles.
    const titles = (test) => (test ? [...titles(test.parent), test.title].filter(Boolean) : []);
    const name = (test) => (typeof test.titlePath === "function" ? test.titlePath() : titles(test)).join(" > ");
    // Nothing of ours may end the run that it listens to.
    const on = (event, listener) =>
      runner.on(event, (...words) => {
        try {
          listener(...words);
        } catch (error) {
          write({ event: "problem", kind: "mismatch", message: `our reporter does not understand this mocha: ${error?.stack ?? error}` });
        }
      });
    // Every test of a dry run passes, and none is executed.
    const isDry = Boolean(runner._opts?.dryRun ?? runner.dryRun);
    const failed = new Set();
    const attempts = (test) => (typeof test.currentRetry === "function" ? test.currentRetry() + 1 : 1);
    // Not earlier: neither the pattern nor `.only` is known until the run starts. The runner's own total leaves `.only` out.
    const planned = () => (typeof runner.grepTotal === "function" ? Math.min(runner.total, runner.grepTotal(runner.suite)) : runner.total);
    // The workers of a parallel run have the tests, and this process none.
    const total = () => (typeof runner.suite?.total === "function" ? runner.suite.total() : 0);
    const declared = total();
    runner.once("start", () => {
      const tests = planned();
      runs.planned += tests;
      write({ event: "plan", tests: runs.planned });
      // `.only` takes the others out of the suite, and a pattern does not.
      if (total() < declared) only.told(tests, declared, "`.only`");
      if (tests < declared) write({ event: "deselected", tests: declared - tests });
    });
    on("retry", (test) => write({ event: "discarded", name: name(test) }));
    on("test", (test) => write({ event: "start", name: name(test) }));
    const done = (test, status, error) => {
      const own = error?.split("\n").find((at) => at.includes(`${test.file}:`) || at.includes(`at Context.`));
      const position = own && /:(\d+):\d+\)?$/.exec(own.trim());
      const at = position ? Number(position[1]) : undefined;
      write({ event: "test", name: name(test), status, duration_ms: test.duration, error, file: test.file, line: at, attempts: attempts(test) });
    };
    on("pass", (test) => (isDry ? done(test, "skipped", "a dry run executes no test") : done(test, "passed")));
    on("pending", (test) => done(test, "skipped"));
    on("fail", (test, error) => {
      // A test can fail after it has passed, and more than once.
      if (failed.has(test)) return;
      failed.add(test);
      const timeout = error?.code === "ERR_MOCHA_TIMEOUT";
      const status = timeout ? "timed_out" : test.type === "hook" ? "errored" : "failed";
      done(test, status, error?.stack || error?.message || String(error));
    });
    runner.once("end", () => {
      write({ event: "end" });
      runs.isActive = false;
    });
  }
};
