#!/usr/bin/env python3
"""Measures how a coding agent works with the tools of one MCP server: calls, refusals, failures, bytes and time.

    agents.py tasks                                  the tasks, one on each line
    agents.py prepare TASK FOLDER                    lays out the task's project; prints what the agent is told
    agents.py serve SERVER SOCKET LOG FOLDER         runs a server of servers.toml and writes down every call
    agents.py list SOCKET                            what a client shows its model: instructions and tools
    agents.py call SOCKET TOOL JSON|-                one call; prints the text that a client hands to its model
    agents.py check TASK FOLDER                      decides whether the task is solved; exit code 0 or 1
    agents.py report LOG                             every call of a run, and their sum
    agents.py table RESULTS                          the table of docs/benchmarks/agents.md, from RESULTS.jsonl

A call is `refused` if the server answers with a JSON-RPC error or says that the arguments are wrong, and `failed` if the
result has `isError` for another reason.
"""
import importlib.util
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import threading
import time
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
CALL_TIMEOUT = 600
REFUSED = re.compile(
    r"invalid (arguments|params)|validation|is required|required (parameter|field|property)|expected|"
    r"unknown (parameter|field|argument)|unrecognized",
    re.I,
)


class Server:
    """One MCP server over standard input and output."""

    def __init__(self, command, folder, env):
        self.process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, **env}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.last_id, self.waiting, self.lock = 0, {}, threading.Lock()
        threading.Thread(target=self._read, daemon=True).start()
        handshake = self.request("initialize", {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "agent-benchmark", "version": "1"},
        })
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.instructions = handshake["result"].get("instructions", "")
        self.tools = self._tools()

    def _send(self, message):
        with self.lock:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()

    def _read(self):
        for line in self.process.stdout:
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if "method" in message and "id" in message:
                answer = {"roots": []} if message["method"] == "roots/list" else {}
                self._send({"jsonrpc": "2.0", "id": message["id"], "result": answer})
            elif message.get("id") in self.waiting:
                slot = self.waiting.pop(message["id"])
                slot["answer"] = message
                slot["done"].set()

    def request(self, method, params):
        with self.lock:
            self.last_id += 1
            number = self.last_id
        slot = self.waiting[number] = {"done": threading.Event(), "answer": None}
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        if not slot["done"].wait(CALL_TIMEOUT):
            return {"error": {"code": 0, "message": f"no answer in {CALL_TIMEOUT} s"}}
        return slot["answer"]

    def _tools(self):
        tools, cursor = [], None
        while True:
            result = self.request("tools/list", {"cursor": cursor} if cursor else {})["result"]
            tools += result["tools"]
            cursor = result.get("nextCursor")
            if not cursor:
                return tools


def text_for_the_model(message):
    """The text that a client gives its model, and what kind of answer it is."""
    if "error" in message:
        return f"error {message['error'].get('code')}: {message['error'].get('message')}", "refused"
    result = message.get("result", {})
    parts = [
        part["text"] if part.get("type") == "text"
        else f"[{part.get('type')} {part.get('mimeType', '')}, {len(part.get('data', ''))} bytes of base64]"
        for part in result.get("content", [])
    ]
    text = "\n".join(parts) if parts else json.dumps(result.get("structuredContent", result))
    if not result.get("isError"):
        return text, "ok"
    return text, "refused" if REFUSED.search(text[:400]) else "failed"


def serve(name, socket_path, log, folder):
    folder = os.path.abspath(folder)
    entry = tomllib.loads((HERE / "servers.toml").read_text())[name]
    places = {"{dir}": folder, "{mcp-stdio}": os.environ.get("MCP_STDIO", "mcp-stdio")}

    def fill(word):
        for place, value in places.items():
            word = word.replace(place, value)
        return word

    servers = [Server([fill(word) for word in command], folder, entry.get("env", {})) for command in entry["commands"]]
    tools = [(tool, server) for server in servers for tool in server.tools]
    owner = {tool["name"]: server for tool, server in reversed(tools)}
    instructions = [server.instructions for server in servers if server.instructions]
    listed = "\n\n".join(instructions + [
        f"## {tool['name']}\n{tool.get('description', '')}\n{json.dumps(tool['inputSchema'], ensure_ascii=False)}"
        for tool, _ in tools
    ])
    out, lock = open(log, "a"), threading.Lock()

    def write(row):
        with lock:
            out.write(json.dumps({**row, "time": time.time()}) + "\n")
            out.flush()

    write({"server": name, "tools": len(tools), "list_bytes": len(listed.encode())})

    def answer(request):
        if request["do"] == "list":
            return {"text": listed, "kind": "ok"}
        begin = time.time()
        arguments = request["arguments"]
        try:
            arguments = json.loads(arguments)
            if request["tool"] in owner:
                message = owner[request["tool"]].request(
                    "tools/call", {"name": request["tool"], "arguments": arguments})
            else:
                # The server itself says what it says to a client that calls a tool which it does not list.
                message = servers[0].request("tools/call", {"name": request["tool"], "arguments": arguments})
            text, kind = text_for_the_model(message)
        except ValueError as error:
            text, kind = f"the arguments are not JSON: {error}", "bad json"
        write({
            "tool": request["tool"], "arguments": arguments, "kind": kind, "seconds": round(time.time() - begin, 3),
            "bytes_in": len(request["arguments"].encode()), "bytes_out": len(text.encode()), "begin": text[:300],
        })
        return {"text": text, "kind": kind}

    listener = socket.socket(socket.AF_UNIX)
    listener.bind(socket_path)
    listener.listen(8)

    def connection(client):
        with client, client.makefile("rb") as lines:
            client.sendall(json.dumps(answer(json.loads(lines.readline()))).encode() + b"\n")

    while True:
        client, _ = listener.accept()
        threading.Thread(target=connection, args=(client,), daemon=True).start()


def ask(socket_path, request):
    client = socket.socket(socket.AF_UNIX)
    client.connect(socket_path)
    client.sendall(json.dumps(request).encode() + b"\n")
    answer = json.loads(client.makefile("rb").readline())
    print(answer["text"])
    return 0 if answer["kind"] == "ok" else 1


def summary(log):
    rows = [json.loads(line) for line in open(log)]
    head, calls = rows[0], [row for row in rows if "tool" in row]
    count = lambda kind: sum(row["kind"] == kind for row in calls)
    return calls, {
        "server": head["server"], "tools": head["tools"], "list_bytes": head["list_bytes"], "calls": len(calls),
        "refused": count("refused") + count("bad json"), "failed": count("failed"),
        "answer_bytes": sum(row["bytes_out"] for row in calls),
        "bytes": head["list_bytes"] + sum(row["bytes_out"] for row in calls),
        "seconds": round(calls[-1]["time"] - calls[0]["time"] + calls[0]["seconds"]) if calls else 0,
    }


def report(log):
    calls, total = summary(log)
    for row in calls:
        print(f"{row['kind']:9}{row['tool']:26}{json.dumps(row['arguments'])[:110]:112}{row['bytes_out']:7}"
              f" {row['seconds']:.2f} s" + (f" {row['begin'][:120]!r}" if row["kind"] != "ok" else ""))
    print(json.dumps(total))


def table(results):
    """Each task and server: the medians of the runs that solved the task."""
    runs = [json.loads(line) for line in open(results) if line.strip()]
    print("| task | server | runs | solved | calls | refused | failed | bytes | seconds | misled |")
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for task in tasks():
        for server in dict.fromkeys(run["server"] for run in runs if run["task"] == task):
            these = [run for run in runs if (run["task"], run["server"]) == (task, server)]
            solved = [run for run in these if run["solved"]]
            figures = [
                f"{statistics.median(run[key] for run in solved):,.0f}" if solved else "–"
                for key in ("calls", "refused", "failed", "bytes", "seconds", "misled")
            ]
            print(f"| {task} | {server} | {len(these)} | {len(solved)} | {' | '.join(figures)} |")


def tasks():
    return sorted(path.parent.name for path in HERE.glob("tasks/*/task.py"))


def load(task):
    spec = importlib.util.spec_from_file_location(task, HERE / "tasks" / task / "task.py")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(HERE))
    spec.loader.exec_module(module)
    return module


def prepare(task, folder):
    """Lays out the project of a task, and prints what the agent is told."""
    folder = Path(folder).absolute()
    folder.mkdir(parents=True, exist_ok=False)
    values = {"FOLDER": str(folder), **(load(task).prepare(folder) or {})}
    text = (HERE / "tasks" / task / "task.md").read_text()
    for name, value in values.items():
        text = text.replace("{" + name + "}", str(value))
    print((HERE / "brief.md").read_text().replace("{TASK}", text.strip()))


def check(task, folder):
    """Prints every fault of the solution. A task without one is solved."""
    faults = load(task).check(Path(folder).absolute())
    for fault in faults:
        print(fault)
    print("not solved" if faults else "solved")
    return 1 if faults else 0


def main(arguments):
    match arguments:
        case ["tasks"]:
            print("\n".join(tasks()))
        case ["prepare", task, folder]:
            prepare(task, folder)
        case ["serve", server, socket_path, log, folder]:
            serve(server, socket_path, log, folder)
        case ["list", socket_path]:
            return ask(socket_path, {"do": "list"})
        case ["call", socket_path, tool]:
            return ask(socket_path, {"do": "call", "tool": tool, "arguments": "{}"})
        case ["call", socket_path, tool, text]:
            text = sys.stdin.read() if text == "-" else text
            return ask(socket_path, {"do": "call", "tool": tool, "arguments": text})
        case ["check", task, folder]:
            return check(task, folder)
        case ["report", log]:
            report(log)
        case ["table", results]:
            table(results)
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
