// Loaded by each process that `node --test` starts for a file, and by a file that runs its tests itself. It tells that
// `process.exit()` ended one: node counts a file that has reported no test by then as a test that passed.
const { isMainThread } = require("node:worker_threads");
const fs = require("node:fs");
const path = require("node:path");

// It lies in a folder `node_modules`, so that node's coverage leaves it out.
const FOLDER = path.join(__dirname, "../..");

const start = () => {
  const isChild = (process.env.NODE_TEST_CONTEXT ?? "").startsWith("child");
  // The process that starts the others passes its options on to them.
  if (!isChild && process.execArgv.includes("--test")) return;
  // What the tests fork has the options that it has without us.
  const options = process.execArgv.filter((option) => option !== `--require=${__filename}`);
  process.execArgv.splice(0, process.execArgv.length, ...options);
  const run = options.map((option) => /node\.mjs\?run=([\w-]+)$/.exec(option)?.[1]).find(Boolean);
  const events = isChild ? undefined : require(path.join(FOLDER, "events.cjs"));
  const { appendFileSync } = fs;
  // Returns true in a hook such as `after`, also after it has waited.
  const isInHook = () => {
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 100;
    const { stack } = new Error();
    Error.stackTraceLimit = stackTraceLimit;
    return /\bat (async )?TestHook\.run/.test(String(stack));
  };
  const exits = () => {
    const loaded = (process.moduleLoadList ?? []).includes("NativeModule test");
    const hook = isInHook();
    if (isChild) {
      appendFileSync(path.join(FOLDER, `exits-${process.ppid}`), `${JSON.stringify({ file: process.argv[1], loaded, hook })}\n`);
      return;
    }
    const reporter = process[Symbol.for("core_tools.reporter")];
    if (!loaded || reporter?.hasEnded) return;
    if (run) events.setRun(run);
    if (hook && reporter?.allEnded()) events.write({ event: "end" });
    else {
      const message = `${process.argv[1]}: \`process.exit()\` ended it before node had reported all of its tests`;
      events.write({ event: "problem", kind: "crashed", message });
    }
  };
  const { reallyExit } = process;
  process.reallyExit = function (code) {
    try {
      if (!code) exits();
    } catch {
      // The process ends as it would without us.
    }
    return reallyExit.apply(this, arguments);
  };
};

// With `--test-force-exit` node calls it itself, after its last test.
if (isMainThread && !process.execArgv.includes("--test-force-exit")) start();
