"""A small MCP server that can misbehave: python server.py [BEHAVIOUR...].

It speaks both eras, counts what it is asked in the file $COUNT (one method a line, with the tool of a call),
and reads its tools from $TOOLS (JSON) where that is set. It does not answer `initialize` while the file $HOLD is there.
"""

import json
import os
import subprocess
import sys
import time

BEHAVIOURS = set(sys.argv[1:])
TOOLS = [
    {"name": "echo", "description": "Says it again.", "inputSchema": {"type": "object"}, "x-new": [1e2]},
    {"name": "secret", "description": "For few.", "inputSchema": {"type": "object"}},
    {"name": "sleep", "inputSchema": {"type": "object"}},
    {"name": "die", "inputSchema": {"type": "object"}},
    {"name": "misbehave", "inputSchema": {"type": "object"}},
    {"name": "ask", "inputSchema": {"type": "object"}},
    {"name": "change", "inputSchema": {"type": "object"}},
    {"name": "spawn", "inputSchema": {"type": "object"}},
    {"name": "flood", "inputSchema": {"type": "object"}},
]
asking = {}
listening = None


def tools():
    path = os.environ.get("TOOLS")
    return json.load(open(path)) if path else TOOLS


def send(message):
    raw(json.dumps({"jsonrpc": "2.0", **message}) + "\n")


def raw(text):
    data = text if isinstance(text, bytes) else text.encode()
    os.write(1, data) if len(data) < 4096 else sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def count(text):
    if "COUNT" in os.environ:
        with open(os.environ["COUNT"], "a") as file:
            file.write(text + "\n")


def result(id, value):
    send({"id": id, "result": value})


def text(value, **more):
    return {"content": [{"type": "text", "text": value}], **more}


def frame(kind, id):
    """Frames that must not reach a client."""
    good = '{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"LEAK"}]}}' % id
    return {
        "duplicate": good[:-1] + ',"result":{"LEAK":1}}',
        "escaped": good[:-1] + ',"r\\u0065sult":{"LEAK":1}}',
        "twin": good[:-1] + ',"Result":{"LEAK":1}}',
        "both": good[:-1] + ',"error":{"code":1,"message":"LEAK"}}',
        "bom": "\ufeff" + good,
        "batch": "[" + good + "]",
        "garbage": "LEAK is not JSON",
        "utf8": good.encode()[:-3] + b'\xff"}}',
        "surrogate": good.replace("LEAK", "LEAK\\ud83d"),
        "unasked": good.replace('"id":%d' % id, '"id":%d' % (id + 1000)),
        "string": good.replace('"id":%d' % id, '"id":"%d"' % id),
        "zeros": good.replace('"id":%d' % id, '"id":%d.0' % id),
        "long": good.replace("LEAK", "LEAK" + "x" * (17 << 20)),
        "deep": good.replace('"LEAK"', "[" * 500 + '"LEAK"' + "]" * 500),
        "notification": '{"jsonrpc":"2.0","method":"notifications/LEAK","params":{}}',
        "request": '{"jsonrpc":"2.0","id":1,"method":"LEAK/it"}',
    }[kind]


def call(id, params):
    name, arguments = params["name"], params.get("arguments", {})
    count("tools/call " + name)
    token = params.get("_meta", {}).get("progressToken")
    if name == "echo":
        result(id, text(json.dumps(arguments), structuredContent=arguments))
    elif name == "sleep":
        if token is not None:
            progress = {"progressToken": token, "progress": 1, "message": "half"}
            send({"method": "notifications/progress", "params": progress})
            send({"method": "notifications/progress", "params": {**progress, "progressToken": "LEAK"}})
        time.sleep(arguments["seconds"])
        result(id, text("slept"))
    elif name == "die":
        os._exit(3)
    elif name == "misbehave":
        out = frame(arguments["kind"], id)
        raw(out + (b"\n" if isinstance(out, bytes) else "\n"))
        if arguments.get("then", True):
            result(id, text("and then the answer"))
    elif name == "ask" and arguments.get("in_result"):
        asked = {"one": {"method": arguments["method"], "params": {"from": "server"}}}
        result(id, {"resultType": "input_required", "inputRequests": asked})
    elif name == "ask":
        asking["of-the-server"] = id
        send({"id": "of-the-server", "method": arguments["method"], "params": {"from": "server"}})
    elif name == "change":
        json.dump(arguments["tools"], open(os.environ["TOOLS"], "w"))
        if listening is None:
            send({"method": "notifications/tools/list_changed"})
        else:
            meta = {"_meta": {"io.modelcontextprotocol/subscriptionId": listening}}
            send({"method": "notifications/tools/list_changed", "params": meta})
        result(id, text("changed"))
    elif name == "spawn":
        script = "trap '' TERM INT HUP; setsid sleep %s & sleep %s; wait" % (arguments["s"], arguments["s"])
        subprocess.Popen(["sh", "-c", script])
        result(id, text("spawned"))
    elif name == "flood":
        log = {"method": "notifications/message", "params": {"level": "info", "data": "x" * 100_000}}
        for _ in range(arguments["megabytes"] * 10):
            send(log)
        result(id, text("flooded"))
    else:
        result(id, text("called " + name))


def handle(message):
    global listening
    method, id, params = message.get("method"), message.get("id"), message.get("params") or {}
    if method is None:
        first = asking.pop(id, None)
        if first is not None:
            result(first, text(json.dumps(message.get("result", message.get("error")))))
        return
    if method != "tools/call":
        count(method)
    everything = {"tools": {}, "prompts": {}, "resources": {}, "completions": {}, "logging": {}}
    if method == "initialize":
        while os.path.exists(os.environ.get("HOLD", "")):
            time.sleep(0.02)
        result(id, {
            "protocolVersion": params["protocolVersion"],
            "capabilities": everything,
            "serverInfo": {"name": "server.py", "version": "1"},
            "instructions": "There is a tool called secret.",
        })
    elif method == "server/discover":
        result(id, {
            "supportedVersions": ["2026-07-28"],
            "capabilities": everything,
            "serverInfo": {"name": "server.py", "version": "1"},
            "instructions": "There is a tool called secret.",
            "ttlMs": 0,
            "cacheScope": "public",
        })
    elif method == "tools/list":
        offered, start = tools(), int(params.get("cursor", "0"))
        page = {"tools": offered[start:start + 3], "x-future": {"kept": True}}
        if start + 3 < len(offered):
            page["nextCursor"] = str(start + 3)
        if "slow-list" in BEHAVIOURS:
            time.sleep(0.2)
        if "endless" in BEHAVIOURS:
            page["nextCursor"] = "0"
        if "twin-list" in BEHAVIOURS:
            page["Tools"] = []
        result(id, page)
    elif method == "tools/call":
        call(id, params)
    elif method == "prompts/list":
        result(id, {"prompts": [{"name": "p"}]})
    elif method == "resources/list":
        result(id, {"resources": [{"uri": "x://y", "name": "y"}]})
    elif method == "subscriptions/listen":
        listening = id
        meta = {"io.modelcontextprotocol/subscriptionId": id}
        accepted = {"_meta": meta, "notifications": params["notifications"]}
        send({"method": "notifications/subscriptions/acknowledged", "params": accepted})
    elif id is not None:
        result(id, {})


if "mute" in BEHAVIOURS:
    time.sleep(600)
if "deaf" in BEHAVIOURS:
    raw('{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"here"}}\n')
    time.sleep(600)
print("server.py is up", file=sys.stderr, flush=True)
for line in sys.stdin:
    handle(json.loads(line))
if "stubborn" in BEHAVIOURS:
    time.sleep(600)
