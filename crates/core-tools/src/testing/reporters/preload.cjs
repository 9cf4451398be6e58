// Loaded by every Node process of a project's test command (`NODE_OPTIONS`). It finds the test runner among them, adds our
// reporter beside the project's own, and leaves: what the tests start has the environment that it has without us.
const { isMainThread } = require("node:worker_threads");
const path = require("node:path");
const fs = require("node:fs");
const { spawnSync } = require("node:child_process");
const { pathToFileURL } = require("node:url");
const Module = require("node:module");

const PACKAGE_MANAGER =
  /[\\/]node_modules[\\/](npm|pnpm|yarn|corepack)[\\/]|[\\/](npm-cli|npx-cli|pnpm|pnpx|yarn|yarnpkg|corepack|yarn-[\w.-]+)\.[cm]?js$/;

// Returns the options of `NODE_OPTIONS` without ours.
const withoutUs = (options) =>
  options
    .split(/\s+(?=--)/)
    .filter((option) => !option.includes(__filename))
    .join(" ")
    .trim();

// Takes what loads our reporters out of the environment, also of those for other languages.
const leave = () => {
  let additions = [];
  try {
    additions = JSON.parse(fs.readFileSync(path.join(__dirname, "environment.json"), "utf8"));
  } catch {
    // The folder is gone: nothing can be loaded from it.
  }
  for (const [name, word, separator] of additions) {
    const words = `${separator}${process.env[name] ?? ""}${separator}`;
    if (!words.includes(`${separator}${word}${separator}`)) continue;
    const rest = words.replace(`${separator}${word}${separator}`, () => separator).slice(1, -1);
    if (rest) process.env[name] = rest;
    else delete process.env[name];
  }
  // A script may have quoted it anew, or set it twice.
  const options = withoutUs(process.env.NODE_OPTIONS ?? "");
  if (options) process.env.NODE_OPTIONS = options;
  else delete process.env.NODE_OPTIONS;
  // Where a script sets the variable itself, a `node` of ours brought us here.
  const programs = path.join(__dirname, "bin");
  const folders = (process.env.PATH ?? "").split(path.delimiter);
  if (folders.includes(programs)) process.env.PATH = folders.filter((folder) => folder !== programs).join(path.delimiter);
  const at = process.execArgv.indexOf(__filename);
  if (at > 0) process.execArgv.splice(at - 1, 2);
};

const real = (file) => {
  try {
    return fs.realpathSync(file);
  } catch {
    return file;
  }
};

// Returns the folder and the manifest of the package that a program belongs to.
const packageOf = (file) => {
  for (let folder = path.dirname(file); folder !== path.dirname(folder); folder = path.dirname(folder)) {
    try {
      const manifest = JSON.parse(fs.readFileSync(path.join(folder, "package.json"), "utf8"));
      if (manifest.name) return { folder, name: manifest.name, version: String(manifest.version) };
    } catch {
      // There is none, or it has no name: the folder above may have one.
    }
  }
  return undefined;
};

const start = () => {
  const events = require("./events.cjs");
  const program = process.argv[1] ? real(process.argv[1]) : undefined;
  const isNodeTest = process.execArgv.includes("--test");
  const owner = program?.includes(`node_modules${path.sep}`) ? packageOf(program) : undefined;
  const id = `${process.pid}-${Date.now().toString(36)}`;
  events.setRun(id);
  events.write({
    event: "process",
    program: isNodeTest || !owner ? "node" : owner.name,
    arguments: owner ? process.argv.slice(2) : [...process.execArgv, ...process.argv.slice(1)],
    folder: process.cwd(),
    parent: process.ppid,
    script: process.env.npm_lifecycle_event,
  });
  let found = false;
  const cannot = (runner, why) => events.write({ event: "uninstrumented", runner, why });
  // After the last listener: runners choose their exit code there.
  const { emit, reallyExit } = process;
  const exits = (code) => {
    if (!found && ["vitest", "ava"].includes(owner?.name)) cannot(owner.name, `${owner.name} ended before it began a run`);
    events.write({ event: "exit", code: process.exitCode ?? code ?? 0 });
  };
  process.emit = function (event, code) {
    const result = emit.apply(this, arguments);
    if (event === "exit") exits(code);
    return result;
  };
  process.reallyExit = function (code) {
    exits(code);
    return reallyExit.apply(this, arguments);
  };

  // Returns true for the first runner of a process. A runner that tests itself starts others.
  const isFirst = () => !found && (found = true);
  // The same for each run of a runner that a program may start again after it has ended. A run within a run is none of them.
  const isNext = (runner, version) => {
    if (events.runs.isActive || (found && found !== runner)) return false;
    if (!found) reports(runner, version);
    found = runner;
    return (events.runs.isActive = true);
  };
  const reports = (runner, version) => {
    leave();
    events.write({ event: "runner", runner, version });
  };

  // Returns true if a file that is run alone has tests of `node:test`.
  const hasNodeTests = () => {
    try {
      return !owner && program !== undefined && /["']node:test["']/.test(fs.readFileSync(program, "utf8"));
    } catch {
      return false;
    }
  };

  // Runs node again, with our reporter beside those that the command names: the options of a process that runs cannot be
  // changed. Without a reporter among its options, node chooses the same as it would have.
  const runNodeTests = () => {
    const [major, minor] = process.versions.node.split(".").map(Number);
    if (major < 18 || (major === 18 && minor < 15)) return cannot("node", `node ${process.versions.node} takes no reporter`);
    const given = (text) => (text.match(/--test-reporter(?=[= ])/g) ?? []).length;
    const destinations = (text) => (text.match(/--test-reporter-destination(?=[= ])/g) ?? []).length;
    const options = `${process.env.NODE_OPTIONS ?? ""} ${process.execArgv.join(" ")} `;
    const add = [];
    if (given(options) === 0) add.push(`--test-reporter=${process.stdout.isTTY || major >= 23 ? "spec" : "tap"}`);
    if (destinations(options) === 0) add.push("--test-reporter-destination=stdout");
    const reporter = pathToFileURL(path.join(__dirname, "node.mjs"));
    reporter.searchParams.set("run", id);
    add.push(`--test-reporter=${reporter.href}`, "--test-reporter-destination=stdout");
    add.push(`--require=${path.join(__dirname, "node_modules/core_tools/exit.cjs")}`);
    reports("node", process.versions.node);
    const again = spawnSync(process.execPath, [...process.execArgv, ...add, ...process.argv.slice(1)], { stdio: "inherit" });
    if (again.error) throw again.error;
    if (again.signal) process.kill(process.pid, again.signal);
    process.exit(again.status ?? 1);
  };

  const addToMocha = (Mocha, version) => {
    const { run } = Mocha.prototype;
    Mocha.prototype.run = function (...words) {
      if (!isNext("mocha", version)) return run.apply(this, words);
      const Own = this._reporter;
      const Ours = require("./mocha.cjs");
      this._reporter = function (runner, options) {
        new Ours(runner);
        return new Own(runner, options);
      };
      try {
        return run.apply(this, words);
      } finally {
        this._reporter = Own;
      }
    };
  };

  const addToJest = (config, version) => {
    const { readConfigs } = config;
    const add = (read) => {
      if (!isNext("jest", version)) return read;
      const reporters = read.globalConfig.reporters ?? [["default", {}]];
      return {
        ...read,
        globalConfig: Object.freeze({ ...read.globalConfig, reporters: [...reporters, [path.join(__dirname, "jest.cjs"), {}]] }),
        configs: read.configs.map((one) => Object.freeze({ ...one, testLocationInResults: true })),
      };
    };
    config.readConfigs = function (...words) {
      const read = readConfigs.apply(this, words);
      return typeof read?.then === "function" ? read.then(add) : add(read);
    };
  };

  // Mocha and jest are found where they are loaded: other programs run them too.
  const load = Module._load;
  Module._load = function (request, parent, isMain) {
    const exports = load.apply(this, arguments);
    const file = parent?.filename ?? "";
    if (!found && request === "jest-config" && /@jest[\\/]core[\\/]/.test(file) && typeof exports.readConfigs === "function") {
      Module._load = load;
      addToJest(exports, packageOf(file)?.version);
    } else if (!found && /(^|[\\/])mocha(\.c?js)?$/.test(request) && typeof exports?.prototype?.run === "function" && "loadFiles" in exports.prototype) {
      Module._load = load;
      addToMocha(exports, packageOf(Module._resolveFilename(request, parent, isMain))?.version);
    } else if (/(^|[\\/])tape([\\/]index\.js)?$/.test(request) && typeof exports?.only === "function" && !exports.only.toString().includes("isTold")) {
      addToTape(exports);
    }
    return exports;
  };

  // Tape tells nothing of the tests that `.only` leaves out.
  const addToTape = (tape) => {
    const { only } = tape;
    let isTold = false;
    const told = function (...words) {
      if (!isTold) {
        const frame = new Error().stack.split("\n").find((line, index) => index > 1 && !line.includes("node_modules") && !line.includes(__filename));
        const place = /([^()\s]+:\d+):\d+\)?$/.exec(frame ?? "");
        const file = place ? ` (${path.relative(process.cwd(), place[1].replace(/^file:\/\//, ""))})` : "";
        events.write({ event: "note", message: `only one test of tape ran because of \`.only\`${file}; tape does not tell of the others` });
      }
      isTold = true;
      return only.apply(this, words);
    };
    tape.only = told;
    if (tape.test?.only === only) tape.test.only = told;
  };

  const addToVitest = async () => {
    leave();
    if (Number.parseInt(owner.version, 10) < 3) return cannot("vitest", `vitest ${owner.version} is older than our reporter knows`);
    const at = (file) => pathToFileURL(path.join(owner.folder, "dist", file)).href;
    const { ReportersMap } = await import(at("reporters.js"));
    const { default: Ours } = await import(pathToFileURL(path.join(__dirname, "vitest.mjs")).href);
    const { BaseSequencer } = await import(at("node.js"));
    const join = (context) => {
      if (!Array.isArray(context?.reporters) || !isFirst()) return;
      reports("vitest", owner.version);
      context.reporters.push(new Ours());
    };
    const patched = new Set();
    for (const Reporter of Object.values(ReportersMap)) {
      for (let type = Reporter.prototype; type && type !== Object.prototype; type = Object.getPrototypeOf(type)) {
        if (patched.has(type) || !Object.hasOwn(type, "onInit")) continue;
        patched.add(type);
        const { onInit } = type;
        type.onInit = function (context, ...words) {
          join(context);
          return onInit.call(this, context, ...words);
        };
      }
    }
    // Where all reporters are the project's own, the files are put in order before they run.
    const { sort } = BaseSequencer.prototype;
    BaseSequencer.prototype.sort = function (...words) {
      join(this.ctx);
      return sort.apply(this, words);
    };
  };

  const addToAva = async () => {
    leave();
    for (const file of ["default.js", "tap.js"]) {
      const { default: Reporter } = await import(pathToFileURL(path.join(owner.folder, "lib/reporters", file)).href);
      const { startRun, endRun } = Reporter.prototype;
      let end;
      Reporter.prototype.startRun = function (plan) {
        const result = startRun.call(this, plan);
        if (isFirst()) {
          reports("ava", owner.version);
          end = require("./ava.cjs")(plan, ({ testFile, title }) => this.prefixTitle(testFile, title));
        }
        return result;
      };
      // Before version 6, a run has no event for its end.
      Reporter.prototype.endRun = function (...words) {
        end?.();
        return endRun.apply(this, words);
      };
    }
  };

  const addToPlaywright = () => {
    const words = process.argv.slice(2);
    if (!words.includes("test") || words.includes("--list")) return;
    reports("playwright", owner.version);
    // Its own way to have one reporter more.
    process.env.PW_TEST_REPORTER = path.join(__dirname, "playwright.cjs");
  };

  // These report by TAP or not at all, and start no other runner.
  if (["tape", "jasmine", "uvu", "qunit"].includes(owner?.name)) leave();
  const told = (runner) => (error) => cannot(runner, String(error?.message ?? error));
  if (isNodeTest || hasNodeTests()) runNodeTests();
  else if (owner?.name === "vitest") addToVitest().catch(told("vitest"));
  else if (owner?.name === "ava") addToAva().catch(told("ava"));
  else if (owner && ["playwright", "@playwright/test"].includes(owner.name)) addToPlaywright();
};

// The link that started a package manager may have another name than its program.
const names = [process.argv[1] ?? "", real(process.argv[1] ?? "")];
// Deno takes `NODE_OPTIONS` as well. Its tests may not read our files, and it has a report of its own.
const isNode = !process.versions.deno && !process.versions.bun;
if (isNode && isMainThread && !names.some((name) => PACKAGE_MANAGER.test(name))) start();
