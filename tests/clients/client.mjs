// Drives a server with the official TypeScript client:
// node client.mjs MODULES CLIENT SECONDS stdio SERVER | http URL TOKEN
// CLIENT is `v1` (@modelcontextprotocol/sdk) or `legacy`, `auto` or `pinned` (@modelcontextprotocol/client).
// SECONDS is what to give `sleep`, so that the caller can find what was left running.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";

const [modules, kind, seconds, transportName, target, token] = process.argv.slice(2);
const require = createRequire(`${modules}/`);
const MODERN = "2026-07-28";

async function library() {
  if (kind === "v1") {
    return {
      ...require("@modelcontextprotocol/sdk/client/index.js"),
      ...require("@modelcontextprotocol/sdk/client/stdio.js"),
      ...require("@modelcontextprotocol/sdk/client/streamableHttp.js"),
    };
  }
  return { ...require("@modelcontextprotocol/client"), ...require("@modelcontextprotocol/client/stdio") };
}

const { Client, StdioClientTransport, StreamableHTTPClientTransport } = await library();
const mode = { legacy: "legacy", auto: "auto", pinned: { pin: MODERN } }[kind];
const era = kind === "v1" || kind === "legacy" ? "2025-11-25" : MODERN;

function transport(bearer) {
  if (transportName === "stdio") return new StdioClientTransport({ command: target, stderr: "inherit" });
  const headers = { Authorization: `Bearer ${bearer}` };
  return new StreamableHTTPClientTransport(new URL(target), { requestInit: { headers } });
}

async function connect(bearer) {
  const client = new Client({ name: "test", version: "1" }, mode ? { versionNegotiation: { mode } } : {});
  await client.connect(transport(bearer));
  return client;
}

const client = await connect(token);
// v1 and v2 differ in whether a schema stands between the parameters and the options.
const call = (name, args, options) =>
  kind === "v1"
    ? client.callTool({ name, arguments: args }, undefined, options)
    : client.callTool({ name, arguments: args }, options);
const text = (result) => result.content.map((block) => block.text ?? "").join("");

function running() {
  try {
    execFileSync("pgrep", ["-f", `^sleep ${seconds}`]);
    return true;
  } catch {
    return false;
  }
}

async function until(what, condition) {
  const end = Date.now() + 20_000;
  while (!condition()) {
    assert(Date.now() < end, `not within 20 s: ${what}`);
    await sleep(20);
  }
}

if (kind !== "v1") assert.equal(client.getNegotiatedProtocolVersion(), era);

// List. The client checks every structured result against the schema it was listed with.
const { tools } = await client.listTools();
const names = tools.map((tool) => tool.name);
for (const name of ["read_file", "edit_file", "run_command", "start_command"]) assert(names.includes(name), name);

// Text, a structured report, a report of a failure, an error, a tool that is not there.
assert.equal(text(await call("read_file", { path: "a.txt" })), "hello\n");
let result = await call("run_command", { command: "echo hi" });
assert.equal(result.structuredContent.stdout, "hi\n");
result = await call("run_command", { command: ["sh", "-c", "exit 3"] });
assert(result.isError);
assert.equal(result.structuredContent.exit_code, 3);
result = await call("read_file", { path: "../x" });
assert(result.isError && text(result).includes("outside"), text(result));
await assert.rejects(call("no_such_tool", {}), (error) => error.code === (era === MODERN ? -32602 : -32601));

// Progress.
const heard = [];
const script = "for i in 1 2 3 4 5; do echo step $i; sleep 0.5; done";
await call("run_command", { command: ["sh", "-c", script] }, { onprogress: (progress) => heard.push(progress) });
assert(heard.length > 0);
for (const [index, { progress, message }] of heard.entries()) {
  assert.match(message, /^step \d$/);
  assert(index === 0 || progress > heard[index - 1].progress);
}

// A call that is given up, or that takes longer than the client waits, ends with everything it started.
const tree = { command: ["sh", "-c", `setsid sleep ${seconds} & sleep ${seconds}`] };
const stop = new AbortController();
const given = call("run_command", tree, { signal: stop.signal });
given.catch(() => {});
await until("it runs", running);
stop.abort("enough");
await assert.rejects(given);
await until("a call that was given up ends", () => !running());
await assert.rejects(call("run_command", tree, { timeout: 1500 }));
await until("a call that timed out ends", () => !running());

// A client that waits longer where it hears of progress is not cut off.
const slow = { command: ["sh", "-c", "for i in 1 2 3 4 5 6; do echo $i; sleep 0.5; done"] };
result = await call("run_command", slow, { timeout: 2500, resetTimeoutOnProgress: true, onprogress: () => {} });
assert.equal(result.structuredContent.exit_code, 0);

// Many at once.
const answers = await Promise.all(
  Array.from({ length: 50 }, (_, number) => call("run_command", { command: ["echo", `n${number}.`] })),
);
for (const [number, answer] of answers.entries()) assert.equal(answer.structuredContent.stdout, `n${number}.\n`);

await client.close();
if (transportName === "http") {
  await assert.rejects(async () => {
    const refused = await connect("ctk_wrong");
    await refused.listTools();
  }, /401|nauthorized|bearer token/);
}
console.log("all of it holds");
