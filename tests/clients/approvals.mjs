// A client whose user approves calls, with the official TypeScript client:
// node approvals.mjs MODULES CLIENT stdio SERVER ARGUMENT... | http URL TOKEN
// CLIENT is `v1` (@modelcontextprotocol/sdk), `legacy` or `pinned` (@modelcontextprotocol/client). The role asks about every
// command but `true`.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";

const [modules, kind, transportName, target, ...rest] = process.argv.slice(2);
const require = createRequire(`${modules}/`);
const sdk =
  kind === "v1"
    ? {
        ...require("@modelcontextprotocol/sdk/client/index.js"),
        ...require("@modelcontextprotocol/sdk/client/stdio.js"),
        ...require("@modelcontextprotocol/sdk/client/streamableHttp.js"),
        ...require("@modelcontextprotocol/sdk/types.js"),
      }
    : { ...require("@modelcontextprotocol/client"), ...require("@modelcontextprotocol/client/stdio") };

function transport() {
  if (transportName === "stdio") {
    return new sdk.StdioClientTransport({ command: target, args: rest, env: process.env, stderr: "inherit" });
  }
  const headers = { Authorization: `Bearer ${rest[0]}` };
  return new sdk.StreamableHTTPClientTransport(new URL(target), { requestInit: { headers } });
}

// What the user will say, and what they were asked.
const answers = [];
const asked = [];
function elicit({ params }) {
  asked.push(params.message);
  const decision = answers.shift();
  if (decision === "decline" || decision === "cancel") return { action: decision };
  return { action: "accept", content: { decision, reason: "not today" } };
}

const mode = { legacy: "legacy", pinned: { pin: "2026-07-28" } }[kind];
const options = { capabilities: { elicitation: {} }, ...(mode ? { versionNegotiation: { mode } } : {}) };
const client = new sdk.Client({ name: "test", version: "1" }, options);
client.setRequestHandler(kind === "v1" ? sdk.ElicitRequestSchema : "elicitation/create", elicit);
await client.connect(transport());
if (kind === "pinned") assert.equal(client.getNegotiatedProtocolVersion(), "2026-07-28");

// A server without sessions knows the calls of an earlier run.
const run = randomUUID();
async function call(word, ...decisions) {
  answers.push(...decisions);
  const result = await client.callTool({ name: "run_command", arguments: { command: `echo ${word} ${run}` } });
  assert.equal(answers.length, 0, `${word}: ${answers} was not asked for`);
  return { failed: Boolean(result.isError), text: result.content.map((block) => block.text ?? "").join("") };
}

let result = await call("first", "allow once");
assert(!result.failed && result.text.includes("first"), result.text);
assert(asked.at(-1).startsWith("An agent in the role builder asks to call run_command."), asked.at(-1));
assert(asked.at(-1).includes(`    command: "echo first ${run}"\n`), asked.at(-1));
// Once is once.
result = await call("first", "deny");
assert(result.failed && result.text.includes("denied this call, because: not today"), result.text);
for (const no of ["decline", "cancel"]) {
  result = await call("third", no);
  assert(result.failed && result.text.includes("not run"), result.text);
}
// For the session: the same call, and no other.
assert(!(await call("fourth", "allow for this session")).failed);
assert(!(await call("fourth")).failed);
assert(!(await call("fifth", "allow once")).failed);
// Each of several calls at once is asked about.
answers.push("allow once", "allow once", "allow once");
const all = await Promise.all(
  ["six", "seven", "eight"].map((word) =>
    client.callTool({ name: "run_command", arguments: { command: `echo ${word} ${run}` } }),
  ),
);
assert(all.every((answer) => !answer.isError), JSON.stringify(all));
assert.equal(answers.length, 0);
// Nobody is asked about what the policy allows.
const questions = asked.length;
assert(!(await client.callTool({ name: "run_command", arguments: { command: "true" } })).isError);
assert.equal(asked.length, questions);
await client.close();
console.log("all of it holds");
