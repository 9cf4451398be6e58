#!/usr/bin/env node
// Starts the program that npm installed for this platform, and stays out of its way.
"use strict";

const { spawn } = require("node:child_process");

const name = `coretools-mcp-${process.platform}-${process.arch}`;
const file = process.platform === "win32" ? "mcp-stdio.exe" : "mcp-stdio";

function program() {
  try {
    return require.resolve(`${name}/bin/${file}`);
  } catch {
    const known = Object.keys(require("./package.json").optionalDependencies);
    const why = known.includes(name)
      ? `${name} is not installed. Install coretools-mcp again, without --omit=optional or --no-optional.`
      : `there is no build for ${process.platform} on ${process.arch}; build it with cargo. There is: ${known.join(", ")}`;
    process.stderr.write(`coretools-mcp: ${why}\n`);
    process.exit(127);
  }
}

const path = program();
const args = process.argv.slice(2);

// Where Node can (22.15, 23.11 and later, not on Windows), the program takes this process over: no signal to pass on,
// no second process to wait for. Node calls that experimental, on standard error, which is not worth a user's attention.
if (process.execve) {
  process.emitWarning = () => {};
  process.execve(path, [path, ...args], process.env);
}

// Whoever ends this process means the program. It decides when it is done. The listeners are there before the program, as it
// may answer, and be asked to end, before this process runs on.
const signals = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR2"];
for (const signal of signals) {
  process.on(signal, () => child.kill(signal));
}
const child = spawn(path, args, { stdio: "inherit", windowsHide: true });
child.on("error", (error) => {
  process.stderr.write(`coretools-mcp: cannot start ${path}: ${error.message}\n`);
  process.exit(126);
});
child.on("exit", (code, signal) => {
  if (signal === null) {
    process.exit(code);
  }
  // To end as the program did.
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
