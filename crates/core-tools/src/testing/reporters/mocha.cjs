// A reporter of mocha: what happens, when it happens, one JSON object a line.
const fs = require("node:fs");
const line = require("./line.cjs");

module.exports = class {
  constructor(runner, options) {
    const to = fs.openSync(options.reporterOptions.output, "a");
    const write = (event) => fs.writeSync(to, line(event));
    const name = (test) => test.titlePath().join(" > ");
    const failed = new Set();
    // Before it begins, a pattern has not been looked at.
    runner.once("start", () => write({ event: "plan", tests: runner.total }));
    runner.on("retry", (test) => write({ event: "left", name: name(test) }));
    runner.on("test", (test) => write({ event: "start", name: name(test) }));
    const done = (test, status, error) => {
      const own = error?.split("\n").find((at) => at.includes(`${test.file}:`) || at.includes(`at Context.`));
      const place = own && /:(\d+):\d+\)?$/.exec(own.trim());
      const at = place ? Number(place[1]) : undefined;
      write({ event: "test", name: name(test), status, duration_ms: test.duration, error, file: test.file, line: at });
    };
    runner.on("pass", (test) => done(test, "passed"));
    runner.on("pending", (test) => done(test, "skipped"));
    runner.on("fail", (test, error) => {
      // A test can fail after it has passed, and more than once.
      if (failed.has(test)) return;
      failed.add(test);
      const timeout = error?.code === "ERR_MOCHA_TIMEOUT";
      const status = timeout ? "timed_out" : test.type === "hook" ? "errored" : "failed";
      done(test, status, error?.stack || error?.message || String(error));
    });
    runner.once("end", () => {
      write({ event: "end" });
    });
  }
};
